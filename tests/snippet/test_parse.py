"""The dialect of an edit and its parts."""

from __future__ import annotations

import pytest

from apply_server.errors import InvalidRequest
from apply_server.snippet import Block, parse_snippet
from apply_server.snippet.text import split_lines

FILE = ["import os", "", "", "def a():", "    return 1", "", "", "def b():", "    return 2"]


def test_segments_and_edges_of_a_lazy_snippet():
    edit = parse_snippet("# ... existing code ...\nx = 1\n\n# ... rest ...\ny = 2\n", [], "python")
    assert edit.dialect == "lazy"
    assert [part.lines for part in edit.segments] == [("x = 1", ""), ("y = 2",)]
    assert [part.marker for part in edit.segments] == ["# ... rest ...", None]
    assert (edit.leading, edit.trailing) == (True, False)


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_line_endings_of_the_snippet_do_not_matter(eol):
    edit = parse_snippet(eol.join(["x = 1", "# ... existing code ...", ""]), [], "python")
    assert [part.lines for part in edit.segments] == [("x = 1",)]


def test_only_line_endings_split_lines():
    assert split_lines("a\x0cb\u2028c\x85d\ne\r\nf\rg") == ["a\x0cb\u2028c\x85d", "e", "f", "g"]
    assert split_lines("a\n\n") == ["a", ""]


PATCHES = {
    "python": ("def b():\n    return 3\n", FILE),
    "yaml": ("web:\n  image: b\n", ["all:", "  web:", "    image: a", "  db:", "    image: c"]),
    "ruby": ("  def b\n    2\n  end\n", ["class A", "  def a", "  end", "  def b", "  end", "end"]),
    "go": ("func B() int {\n\treturn 3\n}\n", ["func A() {", "}", "", "func B() int {", "}"]),
}


@pytest.mark.parametrize("language", PATCHES)
def test_a_snippet_that_names_one_symbol_of_the_file_is_a_patch(language):
    snippet, original = PATCHES[language]
    edit = parse_snippet(snippet, original, language)
    assert edit.dialect == "patch"
    assert (edit.leading, edit.trailing) == (True, True)


@pytest.mark.parametrize(
    ("snippet", "original", "language"),
    [
        ("a = 1\nb = 2\nc = 3\n", ["a = 1", "b = 9"], "python"),
        ("const m = (x) => ({ ...x, k: 1 });\n", ["const n = 1;", "let o = 2;"], "javascript"),
        ("def f(x):\n    ...\n\n\nclass G:\n    ...\n", ["def f(x):", "    ..."], "python"),
        ("plain words\nand more\n", ["other words"], "text"),
    ],
)
def test_a_snippet_without_markers_is_the_whole_file_otherwise(snippet, original, language):
    assert parse_snippet(snippet, original, language).dialect == "full"


def test_one_outer_fence_is_dropped():
    edit = parse_snippet("\n```python\nx = 1\n# ... existing code ...\n```\n", ["x = 0"], "python")
    assert [part.lines for part in edit.segments] == [("x = 1",)]


def test_fences_of_markdown_are_text():
    edit = parse_snippet("```sh\nls\n```\n", ["```sh", "pwd", "```"], "markdown")
    assert edit.segments[0].lines == ("```sh", "ls", "```")


def test_a_fence_inside_the_snippet_is_text():
    snippet = 'DOC = """\n```\nx\n```\n"""\n# ... existing code ...\n'
    assert parse_snippet(snippet, [], "python").segments[0].lines[1] == "```"


SEARCH = (
    "<<<<<<< SEARCH\ndef a():\n    return 1\n=======\ndef a():\n    return 9\n>>>>>>> REPLACE\n"
)


@pytest.mark.parametrize(
    "text",
    [SEARCH, "app.py\n" + SEARCH, "```python\n" + SEARCH + "```\n", "Here it is:\n\n" + SEARCH],
)
def test_search_replace(text):
    edit = parse_snippet(text, FILE, "python")
    assert edit.dialect == "search_replace"
    assert edit.blocks == (Block(("def a():", "    return 1"), ("def a():", "    return 9")),)


def test_the_file_tells_which_divider_is_meant():
    original = ["Title", "=======", "", "Old."]
    text = (
        "<<<<<<< SEARCH\nTitle\n=======\n\nOld.\n=======\nTitle\n=======\n\nNew.\n>>>>>>> REPLACE"
    )
    (block,) = parse_snippet(text, original, "rst").blocks
    assert block.before == ("Title", "=======", "", "Old.")
    assert block.after == ("Title", "=======", "", "New.")


def test_a_conflict_that_the_file_holds_is_text():
    original = ["<<<<<<< HEAD", "a", "=======", "b", ">>>>>>> other"]
    edit = parse_snippet("<<<<<<< HEAD\nc\n=======\nb\n>>>>>>> other\n", original, "text")
    assert edit.dialect == "full"


DIFF_BODY = " def a():\n-    return 1\n+    return 9\n"


@pytest.mark.parametrize(
    "text",
    [
        f"--- a/app.py\n+++ b/app.py\n@@ -4,2 +4,2 @@\n{DIFF_BODY}",
        f"diff --git a/app.py b/app.py\nindex 1a2b..3c4d 100644\n--- a/app.py\n+++ b/app.py\n"
        f"@@ -4,2 +4,2 @@ import os\n{DIFF_BODY}\\ No newline at end of file\n",
        f"```diff\n--- a/app.py\n+++ b/app.py\n@@ -4,9 +4,7 @@\n{DIFF_BODY}```\n",
        f"@@ -4 +4 @@\n{DIFF_BODY}",
    ],
)
def test_unified_diffs_with_right_wrong_and_missing_counts(text):
    edit = parse_snippet(text, FILE, "python")
    assert edit.dialect == "unified_diff"
    assert edit.blocks == (
        Block(("def a():", "    return 1"), ("def a():", "    return 9"), hint=3),
    )


@pytest.mark.parametrize("header", ["@@", "@@ ... @@", "@@ def a() @@"])
def test_a_hunk_without_numbers_gives_no_hint(header):
    (block,) = parse_snippet(f"--- a/f\n+++ b/f\n{header}\n{DIFF_BODY}", FILE, "python").blocks
    assert block.hint is None


def test_a_context_line_that_lost_its_leading_blank_is_context():
    (block,) = parse_snippet("@@ -7,3 +7,3 @@\n\n-x\n+y\ndef b():\n", FILE, "python").blocks
    assert block.before == ("", "x", "def b():")


def test_a_diff_in_a_diff_file_is_text():
    assert parse_snippet(f"@@ -1 +1 @@\n{DIFF_BODY}", [], "diff").dialect == "full"


def test_v4a():
    text = (
        "*** Begin Patch\n*** Update File: app.py\n@@ class A\n@@ def a():\n-    return 1\n"
        "+    return 9\n@@ def b():\n     return 2\n+    # end\n*** End of File\n*** End Patch\n"
    )
    edit = parse_snippet(text, FILE, "python")
    assert edit.dialect == "v4a"
    assert edit.blocks == (
        Block(("    return 1",), ("    return 9",), context=("class A", "def a():")),
        Block(("    return 2",), ("    return 2", "    # end"), context=("def b():",), at_end=True),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n\n",
        "# ... existing code ...\n",
        "```python\n```\n",
        "<<<<<<< SEARCH\nx\n=======\n>>>>>>> REPLACE\n<<<<<<< SEARCH\ny\n=======\nz\n",
        f"--- a/f\n+++ b/f\n@@ -1 +1 @@\n{DIFF_BODY}--- a/g\n+++ b/g\n@@ -1 +1 @@\n{DIFF_BODY}",
        "*** Begin Patch\n*** Add File: new.py\n+x = 1\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: a\n-x\n*** Update File: b\n-y\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: a\n*** End Patch\n",
    ],
)
def test_edits_that_mean_nothing_are_refused(text):
    with pytest.raises(InvalidRequest) as caught:
        parse_snippet(text, FILE, "python")
    assert caught.value.message
