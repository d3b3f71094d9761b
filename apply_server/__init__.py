"""Apply an edit to a file with a local code model, exactly and fast."""

__version__ = "0.1.0"
