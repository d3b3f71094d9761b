"""Parts of an edit are no code: an edit that lost its frame is refused, not written out."""

from __future__ import annotations

import pytest

from apply_server.errors import InvalidRequest
from apply_server.snippet import parse_snippet
from apply_server.snippet.markers import is_marker
from tests.fuzz.running import bounded

FILE = ["import os", "", "", "def a():", "    return 1", "", "", "def b():", "    return 2"]
BEFORE, AFTER = ["def a():", "    return 1"], ["def a():", "    return 9"]
SEARCH = ["<<<<<<< SEARCH", *BEFORE, "=======", *AFTER, ">>>>>>> REPLACE"]
V4A = ["*** Begin Patch", "*** Update File: a.py", " def a():", "-    return 1", "+    return 9"]
V4A.append("*** End Patch")
HUNK = [" def a():", "-    return 1", "+    return 9"]


@pytest.mark.parametrize("lost", [0, 3, 6])
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_block_without_one_of_its_markers_is_refused(lost, blocks):
    lines = SEARCH[:lost] + SEARCH[lost + 1 :] + SEARCH * (blocks - 1)
    with pytest.raises(InvalidRequest):
        parse_snippet("\n".join(lines), FILE, "python")


def test_a_block_with_two_dividers_is_refused_unless_the_file_has_such_a_line():
    text = "\n".join([*SEARCH[:4], "=======", *SEARCH[4:]])
    with pytest.raises(InvalidRequest, match="twice"):
        parse_snippet(text, FILE, "python")
    title = "<<<<<<< SEARCH\nTitle\n=======\nTitle\n=====\n>>>>>>> REPLACE"
    (block,) = parse_snippet(title, ["Title"], "rst").blocks
    assert block.after == ("Title", "=====")


@pytest.mark.parametrize("kept", [slice(1, None), slice(None, -1), slice(0, 2)])
def test_a_patch_without_a_part_of_its_frame_is_refused(kept):
    with pytest.raises(InvalidRequest):
        parse_snippet("\n".join(V4A[kept]), FILE, "python")


def test_words_around_a_patch_are_ignored():
    lines = ["Here is the patch:", "", "```", *V4A, "```", "It returns 9 now."]
    (block,) = parse_snippet("\n".join(lines), FILE, "python").blocks
    assert (block.before, block.after) == (tuple(BEFORE), tuple(AFTER))


@pytest.mark.parametrize(
    "lines",
    [
        ["--- a/f", "+++ b/f", *HUNK],
        ["diff --git a/f b/f"],
        ["@@ -4,2 +4,2 @@"],
        ["Here:", "@@ -4,2 +4,2 @@"],
    ],
)
def test_a_diff_without_a_hunk_is_refused(lines):
    with pytest.raises(InvalidRequest):
        parse_snippet("\n".join(lines), FILE, "python")


@pytest.mark.parametrize(
    "lines",
    [
        HUNK,
        ["    @@ -4,2 +4,2 @@", *("    " + line for line in HUNK)],
        ["The change:", "```diff", "@@ -4,2 +4,2 @@", *HUNK, "```"],
        ["The change:", "@@ -4,2 +4,2 @@", *HUNK],
    ],
)
def test_a_diff_without_a_header_indented_or_among_words_is_one(lines):
    edit = parse_snippet("\n".join(lines), FILE, "python")
    assert edit.dialect == "unified_diff"
    assert [(block.before, block.after) for block in edit.blocks] == [(tuple(BEFORE), tuple(AFTER))]


@pytest.mark.parametrize(
    ("lines", "original", "language"),
    [
        (["- one", "+ two"], ["- one"], "markdown"),
        (["  - one", "- two"], ["  - one"], "yaml"),
        ([">>>>> quoted five times", "x"], ["x"], "text"),
        (["# Diffs", "", "```", "@@ -1 +1 @@", "-a", "+b", "```"], ["# Diffs"], "markdown"),
        (["@@ -1 +1 @@", "x"], ["@@ -1 +1 @@"], "text"),
        (["*** End Patch", "x"], ["*** End Patch"], "text"),
    ],
)
def test_lines_that_only_look_like_a_diffs_are_text(lines, original, language):
    edit = parse_snippet("\n".join(lines), original, language)
    assert edit.blocks == ()
    assert edit.segments[0].lines == tuple(lines)


def test_words_around_the_only_fence_are_no_code():
    lines = ["Here is the code:", "", "```python", "import os", "import sys", "```", "Done."]
    edit = parse_snippet("\n".join(lines), FILE, "python")
    assert edit.segments[0].lines == ("import os", "import sys")


@pytest.mark.parametrize(
    "lines",
    [
        ['"""', "```", "run me", "```", '"""', "import os"],
        ['"""', "```", "import os", "```", '"""', "def a():"],
        ["Words", "```", "nothing of the file", "```"],
    ],
)
def test_code_around_a_fence_stays(lines):
    assert parse_snippet("\n".join(lines), FILE, "python").segments[0].lines == tuple(lines)


MARKER = "<!-- ... existing code ... -->"


@pytest.mark.parametrize(
    ("body", "label"),
    [
        (["# Title", "", "New.", "", MARKER], ""),
        ([MARKER, "New."], ""),
        (["# Text"], "markdown"),
        (["# Title", "x"], ""),
    ],
)
def test_a_fence_around_a_markdown_snippet_is_dropped(body, label):
    edit = parse_snippet("\n".join([f"```{label}", *body, "```"]), ["# Title", "", "Old."], "md")
    assert not any("```" in line for part in edit.segments for line in part.lines)


def test_two_blocks_of_markdown_text_keep_their_fences():
    lines = ["```md", "a", "```"]
    assert parse_snippet("\n".join(lines), ["```md", "b", "```"], "md").segments[0].lines == (
        "```md",
        "a",
        "```",
    )


@pytest.mark.parametrize("line", ["." * 300_000 + "x", "# " + ". " * 150_000 + "x", "~" * 200_000])
def test_a_long_line_takes_no_quadratic_time(line):
    with bounded():
        assert not is_marker(line)
        parse_snippet(f"{line}`\n{line}`\n", ["x"], None)
