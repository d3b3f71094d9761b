"""Which lines stand for existing code, in every comment syntax, and which never do."""

from __future__ import annotations

import pytest

from apply_server.snippet.markers import is_marker, marker_rows

SYNTAXES = [
    "// {}",
    "# {}",
    "## {}",
    "-- {}",
    "; {}",
    ";; {}",
    "% {}",
    "/* {} */",
    "{{/* {} */}}",
    "<!-- {} -->",
    ".. {}",
    '" {}',
    "(* {} *)",
    "{{# {} #}}",
]
WORDS = [
    "... existing code ...",
    "...existing code...",
    "… existing code …",
    "... rest of the code ...",
    "... rest of the file remains the same ...",
    "... remaining methods ...",
    "... unchanged ...",
    "... keep the other imports ...",
    "existing code",
    "rest of code here",
    "rest of the implementation",
    "remaining code unchanged",
    "... (existing code) ...",
    "[... existing code ...]",
]


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("words", WORDS)
def test_markers_in_any_comment_syntax(syntax, words):
    line = syntax.format(words)
    assert is_marker(line)
    assert is_marker("        " + line + "  ")


@pytest.mark.parametrize(
    "line",
    [
        "...",
        "    ...",
        "const all = { ...existing, ...rest };",
        "f(...rest)",
        "...rest,",
        "return x  # ... existing code ...",
        "x = 1; // existing code",
        "# existing users keep their session when the code changes hands twice a day",
        "// otherwise the same request would be sent again",
        "# rest of the arguments",
        "# the previous value",
        "// same as above, but for maps",
        "# ... and so on",
        "-- original author: somebody",
        "x = '# ... existing code ...'",
        "existing code",
        "// see rest.js for the code",
        "/* existing code */ call();",
        "#include <existing>",
        "",
    ],
)
def test_code_and_ordinary_comments_are_no_markers(line):
    assert not is_marker(line)


def test_a_line_that_the_file_has_at_that_place_is_text():
    original = ['TEXT = """', "# ... existing code ...", '"""', "N = 1"]
    snippet = ['TEXT = """', "# ... existing code ...", '"""', "# ... existing code ...", "N = 2"]
    assert marker_rows(snippet, original) == {3}


def test_a_marker_that_the_file_also_has_elsewhere_is_still_one():
    original = ['TEXT = """', "# ... existing code ...", '"""', "N = 1"]
    assert marker_rows(["# ... existing code ...", "N = 2"], original) == {0}
