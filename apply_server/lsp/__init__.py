"""The language server: what editors see of the engine."""
