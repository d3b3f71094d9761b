"""Search/replace, unified diffs and V4A patches, located by content."""

from __future__ import annotations

import pytest

from apply_server.errors import AmbiguousTarget, AnchorNotFound, InvalidRequest
from tests.merge.support import applied, run

FILE = (
    "import os\n\n\nclass A:\n    def load(self):\n        return 1\n\n    def save(self):\n"
    "        return 2\n\n\nclass B:\n    def load(self):\n        return 1\n"
)


def block(before: str, after: str) -> str:
    return f"<<<<<<< SEARCH\n{before}=======\n{after}>>>>>>> REPLACE\n"


def test_the_text_is_replaced_where_it_stands():
    edit = block("        return 2\n", "        return 3\n        # done\n")
    result = run(FILE, edit, "python")
    assert [(hunk.start, hunk.end, hunk.lines) for hunk in result.hunks] == [
        (8, 9, ("        return 3", "        # done"))
    ]
    assert result.hunks[0].anchor == "exact"


def test_several_blocks_in_any_order():
    edit = block("        return 2\n", "        return 3\n") + block("import os\n", "import sys\n")
    assert applied(FILE, edit) == FILE.replace("os", "sys").replace("return 2", "return 3")


def test_other_indentation_is_carried_over():
    edit = block("def save(self):\n    return 2\n", "def save(self):\n    check()\n    return 2\n")
    assert applied(FILE, edit) == FILE.replace(
        "        return 2", "        check()\n        return 2"
    )


def test_an_empty_replacement_deletes():
    edit = block("\n    def save(self):\n        return 2\n", "")
    assert applied(FILE, edit) == FILE.replace("\n    def save(self):\n        return 2\n", "")


def test_equal_places_are_refused():
    with pytest.raises(AmbiguousTarget) as caught:
        run(FILE, block("        return 1\n", "        return 9\n"))
    assert caught.value.details["lines"] == [6, 14]


def test_text_that_is_not_there_is_refused_with_the_closest_lines():
    with pytest.raises(AnchorNotFound) as caught:
        run(FILE, block("    def store(self, everything):\n", "    pass\n"))
    assert 8 in caught.value.details["lines"]


def test_an_applied_block_changes_nothing():
    edit = block("        return 2\n", "        return 33\n")
    assert run(applied(FILE, edit), edit).hunks == ()


def test_a_nearly_equal_text_is_found_with_doubt():
    edit = block(
        "    def save(self, path):\n        return 2\n", "    def save(self):\n        return 4\n"
    )
    result = run(FILE, edit, "python")
    assert "".join(line + "\n" for line in result.lines) == FILE.replace("return 2", "return 4")
    assert not result.unambiguous


def test_blocks_that_overlap_are_refused():
    edit = block("class A:\n", "class C:\n") + block("class A:\n", "class D:\n")
    with pytest.raises(InvalidRequest):
        run(FILE, edit)


def diff(start: int, body: str) -> str:
    return f"--- a/f\n+++ b/f\n@@ -{start},3 +{start},3 @@\n{body}"


@pytest.mark.parametrize("start", [5, 8, 900])
def test_a_hunk_with_a_wrong_line_number_is_found_by_its_text(start):
    edit = diff(start, "     def save(self):\n-        return 2\n+        return 5\n")
    assert applied(FILE, edit) == FILE.replace("return 2", "return 5")


def test_the_line_number_chooses_among_equal_places():
    body = "     def load(self):\n-        return 1\n+        return 7\n"
    first = applied(FILE, diff(5, body))
    assert first == FILE.replace("return 1", "return 7", 1)
    second = applied(FILE, diff(13, body))
    assert second == FILE[: FILE.index("class B")] + FILE[FILE.index("class B") :].replace("1", "7")


def test_hunks_of_a_diff_come_in_order():
    edit = (
        diff(9, "-        return 2\n+        return 3\n")
        + "@@ ... @@\n     def load(self):\n-        return 1\n+        return 7\n"
    )
    expected = FILE.replace("return 2", "return 3")
    cut = expected.index("class B")
    assert applied(FILE, edit) == expected[:cut] + expected[cut:].replace("return 1", "return 7")


def test_a_hunk_of_new_lines_goes_after_its_line():
    assert applied("a\nb\n", "--- a/f\n+++ b/f\n@@ -1,0 +2,1 @@\n+x\n") == "a\nx\nb\n"
    assert applied("a\nb\n", "--- a/f\n+++ b/f\n@@ -0,0 +1,1 @@\n+x\n") == "x\na\nb\n"


def patch(body: str) -> str:
    return f"*** Begin Patch\n*** Update File: f\n{body}*** End Patch\n"


def test_context_lines_choose_the_place_of_a_v4a_part():
    edit = patch("@@ class B:\n     def load(self):\n-        return 1\n+        return 7\n")
    cut = FILE.index("class B")
    assert applied(FILE, edit) == FILE[:cut] + FILE[cut:].replace("return 1", "return 7")


def test_a_v4a_part_may_only_add():
    edit = patch("@@ class B:\n+    size = 3\n")
    assert applied(FILE, edit) == FILE.replace("class B:\n", "class B:\n    size = 3\n")


def test_lines_outside_the_change_keep_their_text():
    original = "a  \nb\u00a0c\nd\n"
    edit = diff(1, " a\n-b c\n+x\n d\n")
    assert applied(original, edit) == "a  \nx\nd\n"
