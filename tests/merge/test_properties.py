"""What holds for every edit: no crash, hunks that rebuild the result, nothing else touched."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.errors import ApplyError
from apply_server.merge import Merge, merge
from apply_server.snippet import parse_snippet

WORDS = [
    "",
    "",
    "}",
    "{",
    "end",
    "    return x",
    "\treturn x",
    "def a():",
    "def b(x):",
    "class C:",
    "  key: 1",
    "# Title",
    "## Part",
    "[section]",
    "x = 1",
    "x = 2",
    "y = f(x)",
    "        y = f(x, x)",
    "const f = () => {",
    "é“quoted” — ",
    "a\x0cb\u2028c",
    "=======",
    "```",
]
EDIT_WORDS = [
    *WORDS,
    "# ... existing code ...",
    "    // ... rest of the code ...",
    "<!-- unchanged -->",
    "<<<<<<< SEARCH",
    ">>>>>>> REPLACE",
    "@@ -1,2 +1,2 @@",
    "--- a/f",
    "+++ b/f",
    "+x = 3",
    "-x = 1",
    " y = f(x)",
    "*** Begin Patch",
    "*** Update File: f",
    "*** End Patch",
    "*** End of File",
    "@@ def a():",
]
lines = st.lists(st.sampled_from(WORDS), max_size=14)
edits = st.lists(st.sampled_from(EDIT_WORDS), min_size=1, max_size=14)
languages = st.sampled_from(["python", "markdown", "toml", "typescript", None])


def rebuild(original: list[str], result: Merge) -> tuple[str, ...]:
    out: list[str] = []
    at = 0
    for hunk in result.hunks:
        assert at <= hunk.start <= hunk.end <= len(original)
        out += original[at : hunk.start]
        out += hunk.lines
        at = hunk.end
    return (*out, *original[at:])


def attempt(original: list[str], text: str, language: str | None) -> Merge | None:
    try:
        return merge(original, parse_snippet(text, original, language), language)
    except ApplyError:
        return None


@settings(deadline=None, max_examples=400)
@given(lines, edits, st.sampled_from(["\n", "\r\n", "\r"]), languages)
def test_any_edit_is_refused_or_its_hunks_rebuild_the_result(original, edit, eol, language):
    result = attempt(original, eol.join(edit), language)
    if result is not None:
        assert rebuild(original, result) == result.lines
        assert 0.0 <= result.confidence <= 1.0
        assert all(0.0 <= hunk.confidence <= 1.0 for hunk in result.hunks)


@settings(deadline=None, max_examples=400)
@given(st.text(max_size=200), st.text(max_size=200), languages)
def test_arbitrary_text_never_crashes(original, edit, language):
    held = original.split("\n")
    result = attempt(held, edit, language)
    if result is not None:
        assert rebuild(held, result) == result.lines


unique = st.integers(6, 40).map(lambda n: [f"value_{i} = compute({i * i})" for i in range(n)])


@settings(deadline=None, max_examples=200)
@given(unique, st.data())
def test_one_changed_line_between_its_neighbours_changes_that_line_only(original, data):
    at = data.draw(st.integers(1, len(original) - 2))
    edit = [
        "# ... existing code ...",
        original[at - 1],
        f"value_{at} = other(source, {at})",
        original[at + 1],
        "# ... existing code ...",
    ]
    result = attempt(original, "\n".join(edit), "python")
    expected = [*original[:at], f"value_{at} = other(source, {at})", *original[at + 1 :]]
    assert result is not None
    assert result.lines == tuple(expected)
    assert result.unambiguous
    assert [(hunk.start, hunk.end) for hunk in result.hunks] == [(at, at + 1)]


@settings(deadline=None, max_examples=200)
@given(unique, st.data())
def test_left_out_lines_between_given_neighbours_go(original, data):
    start = data.draw(st.integers(1, len(original) - 3))
    stop = data.draw(st.integers(start + 1, min(start + 5, len(original) - 1)))
    edit = [
        "# ... existing code ...",
        original[start - 1],
        original[stop],
        "# ... existing code ...",
    ]
    result = attempt(original, "\n".join(edit), "python")
    assert result is not None
    assert result.lines == (*original[:start], *original[stop:])


def test_matches_that_go_on_contradicting_each_other_are_doubted():
    body = [
        "    for (; *line; line++) {",
        "        if (isspace(*line)) {",
        "            inside = 0;",
    ]
    body += [
        "        } else if (!inside) {",
        "            inside = 1;",
        "        }",
        "    }",
        "}",
        "",
    ]
    head = [
        "",
        "static int count(const char *line)",
        "{",
        "    int words = 0;",
        "    int inside = 0;",
    ]
    edit = "int main(void)\n// ... existing code ...\n    int inside = 0;\n// ... existing code ..."
    result = attempt([*head, "", *body, "int main(void)"], edit, "c")
    assert result is None or not result.unambiguous
