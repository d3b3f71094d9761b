from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.document import Document, Position, PositionEncoding, split_lines
from apply_server.edits import (
    EditStream,
    LineEdit,
    TextEdit,
    apply_edits,
    line_edits,
    rewrite,
    text_edits,
    unified_diff,
)

# Few different lines, so that matches, repeats and moves come up often.
line_texts = st.sampled_from(["", "a", "b", "c", "d", "  e", "}", "é😀", "f\x0c\u2028g"])
line_lists = st.lists(line_texts, max_size=14)
eols = st.sampled_from(["\n", "\r\n", "\r"])
documents = st.lists(st.tuples(line_texts, eols), max_size=12).flatmap(
    lambda pairs: st.sampled_from(
        ["".join(map("".join, pairs)), "".join(map("".join, pairs)).rstrip("\r\n")]
    ).map(Document.from_text)
)
ENCODINGS: tuple[PositionEncoding, ...] = ("utf-8", "utf-16", "utf-32")


def applied(original: Sequence[str], edits: Sequence[LineEdit]) -> list[str]:
    lines, at = [], 0
    for edit in edits:
        assert at <= edit.start <= edit.end <= len(original)
        lines += [*original[at : edit.start], *edit.lines]
        at = edit.end
    return [*lines, *original[at:]]


def longest_common(left: Sequence[str], right: Sequence[str]) -> int:
    @cache
    def longest(i: int, j: int) -> int:
        if i == len(left) or j == len(right):
            return 0
        if left[i] == right[j]:
            return 1 + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1))

    return longest(0, 0)


def view_of(lines: Sequence[str], final_newline: bool) -> str:
    return "\n".join(lines) + ("\n" if final_newline and lines else "")


@given(line_lists, line_lists)
@settings(deadline=None, max_examples=400)
def test_line_edits_are_exact_and_keep_a_longest_common_subsequence(
    original: list[str], final: list[str]
) -> None:
    edits = line_edits(original, final)
    assert applied(original, edits) == final
    kept = len(original) - sum(edit.end - edit.start for edit in edits)
    assert kept == longest_common(original, final)
    assert all(left.end < right.start for left, right in pairwise(edits))
    for edit in edits:
        assert set(original[edit.start : edit.end]).isdisjoint(edit.lines)


def test_an_inserted_function_begins_at_its_header() -> None:
    original = ["def a():", "    x", "", "def c():", "    x"]
    final = ["def a():", "    x", "", "def b():", "    x", "", "def c():", "    x"]
    assert line_edits(original, final) == (LineEdit(3, 3, ("def b():", "    x", "")),)


def test_a_deleted_method_takes_the_blank_line_after_it() -> None:
    final = ["class A {", "  f() {", "  }", "", "  h() {", "  }", "}"]
    original = [*final[:4], "  g() {", "  }", "", *final[4:]]
    assert line_edits(original, final) == (LineEdit(4, 7, ()),)


def test_ten_thousand_shuffled_lines_are_compared_exactly() -> None:
    original = [f"line {i * 7919 % 10_000}" for i in range(10_000)]
    final = [f"line {i}" for i in range(10_000)]
    assert applied(original, line_edits(original, final)) == final


@given(documents, line_lists, st.booleans())
@settings(deadline=None, max_examples=400)
def test_a_rewrite_gives_the_models_lines_and_keeps_the_final_newline_state(
    document: Document, final: list[str], final_newline: bool
) -> None:
    edits, text = rewrite(document, view_of(final, final_newline))
    assert apply_edits(document, edits) == text
    ended = text.endswith(("\n", "\r"))
    if not document.lines:
        assert text == view_of(final, final_newline)
        return
    if not document.lines[-1].eol:
        final = final[: max((i for i, line in enumerate(final, 1) if line), default=0)]
    else:
        final = [line.text for line in split_lines(view_of(final, final_newline))]
    assert [line.text for line in split_lines(text)] == final
    assert not text or ended == bool(document.lines[-1].eol)


@given(documents, line_lists)
@settings(deadline=None, max_examples=400)
def test_untouched_lines_keep_their_endings(document: Document, final: list[str]) -> None:
    edits, text = rewrite(document, view_of(final, True))
    result = split_lines(text)
    shift = 0
    for number, line in enumerate(document.lines):
        before = [edit for edit in edits if edit.end <= number]
        if any(edit.start <= number < edit.end for edit in edits):
            continue
        shift = sum(len(edit.lines) - (edit.end - edit.start) for edit in before)
        # Blank lines at the end of a file without final newline go with what followed them.
        if number + shift >= len(result):
            assert not document.lines[-1].eol
            continue
        new = result[number + shift]
        assert new.text == line.text
        fused = line.eol == "\r" and new.eol == "\n"
        last = number + shift == len(result) - 1 and not document.lines[-1].eol
        assert new.eol == line.eol or fused or last or not line.eol


@given(documents, line_lists)
@settings(deadline=None)
def test_applying_the_same_rewrite_again_changes_nothing(
    document: Document, final: list[str]
) -> None:
    assert rewrite(document, document.view()) == ((), document.text)
    view = view_of(final, True)
    _, once = rewrite(document, view)
    if once:  # an emptied file takes any text as it is
        assert rewrite(Document.from_text(once), view) == ((), once)


@given(st.text("ab\r\n é", max_size=40), st.sampled_from(["utf-8", "utf-16-be", "cp1252"]))
@settings(deadline=None)
def test_bytes_outside_the_edit_do_not_change(text: str, encoding: str) -> None:
    data = text.encode(encoding)
    document = Document.from_bytes(data, encoding)
    _, result = rewrite(document, "new first line\n" + document.view())
    if document.lines:
        assert document.encode(result).endswith(data)


@pytest.mark.parametrize(
    ("text", "edit", "result"),
    [
        # A replaced line has the ending it had, an inserted one that of the line before.
        ("a\r\nb\nc\r", LineEdit(0, 2, ("A", "B")), "A\r\nB\nc\r"),
        ("a\r\nb\nc\r", LineEdit(1, 2, ("B", "x")), "a\r\nB\nx\nc\r"),
        ("a\r\nb\n", LineEdit(1, 1, ("x",)), "a\r\nx\r\nb\n"),
        ("a\r\nb\n", LineEdit(0, 0, ("x",)), "x\r\na\r\nb\n"),
        ("a\r\nb", LineEdit(2, 2, ("x", "y")), "a\r\nb\r\nx\r\ny"),
        ("a", LineEdit(1, 1, ("x",)), "a\nx"),
        # No final newline stays no final newline.
        ("a\nb\nc", LineEdit(2, 3, ()), "a\nb"),
        ("a\n\nc", LineEdit(2, 3, ()), "a"),
        ("a\nb", LineEdit(1, 2, ("x", "")), "a\nx"),
        ("a\nb\n", LineEdit(0, 2, ()), ""),
        ("a\nb", LineEdit(0, 2, ()), ""),
        # Lines of an empty document are joined.
        ("", LineEdit(0, 0, ("x", "y")), "x\ny"),
        ("", LineEdit(0, 0, ("x", "y", "")), "x\ny\n"),
        # A lone CR may not fuse with the LF of a blank line.
        ("a\rx\n\nb\n", LineEdit(1, 2, ()), "a\n\nb\n"),
        ("a\rx\nb\n", LineEdit(1, 2, ("",)), "a\n\nb\n"),
    ],
)
def test_endings_of_new_lines(text: str, edit: LineEdit, result: str) -> None:
    assert apply_edits(Document.from_text(text), [edit]) == result


def test_the_models_line_endings_do_not_count() -> None:
    document = Document.from_text("a\r\nb\r\nc")
    assert rewrite(document, "a\r\nx\rc\r\n") == ((LineEdit(1, 2, ("x",)),), "a\r\nx\r\nc")


def replaced(document: Document, edits: Sequence[TextEdit], encoding: PositionEncoding) -> str:
    text = document.text
    for edit in reversed(edits):
        start, end = (document.offset(place, encoding) for place in (edit.start, edit.end))
        text = text[:start] + edit.new_text + text[end:]
    return text


@given(documents, line_lists, st.sampled_from(ENCODINGS))
@settings(deadline=None, max_examples=400)
def test_text_edits_make_the_same_text(
    document: Document, final: list[str], encoding: PositionEncoding
) -> None:
    edits, text = rewrite(document, view_of(final, True))
    ranges = text_edits(document, edits, encoding)
    assert replaced(document, ranges, encoding) == text
    assert all(a.end <= b.start for a, b in pairwise(ranges))
    for edit in ranges:
        for place in (edit.start, edit.end):
            assert document.position(document.offset(place, encoding), encoding) == place


def test_text_edits_are_as_small_as_the_change() -> None:
    document = Document.from_text("x\r\nint 😀cart = 1;\r\nint cart2;\r\ny\r\nz\r\n")
    edits, _ = rewrite(document, "x\nint 😀basket = 1;\nint basket2;\ny\n")
    assert text_edits(document, edits, "utf-16") == (
        TextEdit(Position(1, 6), Position(1, 9), "baske"),
        TextEdit(Position(2, 4), Position(2, 7), "baske"),
        TextEdit(Position(4, 0), Position(5, 0), ""),
    )


def test_text_edits_never_cut_a_line_ending() -> None:
    document = Document.from_text("a\rp\r\nb\n")
    edits = [LineEdit(1, 1, ("p",)), LineEdit(1, 2, ())]  # p again, with the ending of a
    assert text_edits(document, edits, "utf-8") == (TextEdit(Position(1, 1), Position(2, 0), "\r"),)


@given(documents, line_lists, st.data())
@settings(deadline=None, max_examples=500)
def test_a_stream_gives_the_final_lines_for_every_chunking(
    document: Document, final: list[str], data: st.DataObject
) -> None:
    original = document.line_texts()
    view = view_of(final, data.draw(st.booleans()))
    if data.draw(st.booleans()):
        view = view.replace("\n", "\r\n")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(view)), max_size=8)))
    stream, whole = EditStream(original), EditStream(original)
    edits: list[LineEdit] = []
    for start, end in zip([0, *cuts], [*cuts, len(view)], strict=True):
        edits += stream.feed(view[start:end])
        assert all(edit.end <= stream.progress for edit in edits)
    edits += stream.finish()
    assert edits == whole.feed(view) + whole.finish()
    assert stream.progress == len(original)
    assert all(a.end < b.start for a, b in pairwise(edits))
    wanted = [line.text for line in split_lines(view)]
    if not original and view.endswith(("\n", "\r")):
        wanted.append("")
    assert applied(original, edits) == wanted
    if len({line.eol for line in document.lines}) < 2:
        assert apply_edits(document, edits) == rewrite(document, view)[1]


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_no_streamed_edit_holds_a_line_copied_in_place(data: st.DataObject) -> None:
    """Unique lines, changed in spots: the stream's edits are the smallest there are."""
    original = [f"line {i}" for i in range(data.draw(st.integers(1, 40)))]
    final: list[str] = []
    for number, line in enumerate(original):
        kind = data.draw(st.sampled_from(["keep", "keep", "keep", "delete", "change", "insert"]))
        final += {"keep": [line], "delete": [], "change": [f"new {number}"]}.get(
            kind, [f"new {number}", line]
        )
    stream = EditStream(original)
    edits = stream.feed(view_of(final, True)) + stream.finish()
    kept = len(original) - sum(edit.end - edit.start for edit in edits)
    assert kept == len(set(original) & set(final))


def test_an_edit_is_out_as_soon_as_the_text_is_back_in_step() -> None:
    stream = EditStream(["a", "b", "c", "d"])
    assert stream.feed("a\nB\n") == []
    assert stream.progress == 1
    assert stream.feed("c") == []  # not a whole line yet
    assert stream.feed("\n") == [LineEdit(1, 2, ("B",))]
    assert stream.progress == 3
    assert stream.feed("d\n") == []
    assert stream.finish() == []
    assert stream.progress == 4


def test_a_block_moved_up_does_not_pass_for_a_deletion() -> None:
    original = [f"line {i}" for i in range(30)]
    final = [*original[20:24], *original[:20], *original[24:]]
    stream = EditStream(original)
    edits = stream.feed(view_of(final, True)) + stream.finish()
    assert edits == [LineEdit(0, 0, tuple(original[20:24])), LineEdit(20, 24, ())]


def test_blank_lines_and_braces_alone_do_not_end_a_divergence() -> None:
    original = ["f {", "  x", "}", "", "g {", "  y", "}", ""]
    final = ["new {", "  z", "}", "", *original]
    stream = EditStream(original)
    assert stream.feed(view_of(final[:4], True)) == []
    assert stream.feed(view_of(final[4:], True)) == [LineEdit(0, 0, tuple(final[:4]))]
    assert stream.finish() == []


def test_a_long_rewrite_of_repeated_lines_is_streamed() -> None:
    original = ["x", "y"] * 5000
    final = ["y", "y", "x"] * 3333
    stream = EditStream(original)
    edits = stream.feed(view_of(final, True)) + stream.finish()
    assert applied(original, edits) == final


@pytest.mark.parametrize("text", ["", "a\n", "a\nb", "\ufeffa\n"])
def test_a_byte_order_mark_stays_as_it_was_whatever_a_model_wrote(text: str) -> None:
    document = Document.from_bytes(text.encode())
    assert rewrite(document, "\ufeff" + document.view()) == ((), document.text)
    edited = Document.from_text("\ufeffa\n")
    assert rewrite(edited, "\ufeffa\n") == rewrite(edited, "a\n") == ((), edited.text)


def test_a_unified_diff_reads_like_gits() -> None:
    document = Document.from_text("1\n2\n3\n4\r\n5\n6\n7\n8\n9\n10\n11\n12")
    final = "1\n2\n3\nfour\r\n5\n6\n7\n8\n9\n10\n11\n12\n"
    assert unified_diff(document, final, "src/n.txt") == (
        "--- a/src/n.txt\n+++ b/src/n.txt\n"
        "@@ -1,7 +1,7 @@\n 1\n 2\n 3\n-4\r\n+four\r\n 5\n 6\n 7\n"
        "@@ -9,4 +9,4 @@\n 9\n 10\n 11\n-12\n\\ No newline at end of file\n+12\n"
    )
    assert unified_diff(document, document.text, "n") == ""
    assert unified_diff(Document.from_text(""), "a\nb\x0cc\n", "n") == (
        "--- a/n\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\x0cc\n"
    )


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")
@given(
    original=st.lists(line_texts, max_size=25),
    final=st.lists(line_texts, min_size=1, max_size=25),
    eol=st.sampled_from(["\n", "\r\n"]),
    ends=st.tuples(st.booleans(), st.booleans()),
)
@settings(deadline=None, max_examples=25)
def test_git_applies_our_diffs(
    tmp_path_factory: pytest.TempPathFactory,
    original: list[str],
    final: list[str],
    eol: str,
    ends: tuple[bool, bool],
) -> None:
    old, new = (
        "".join(line + eol for line in lines).removesuffix("" if ended else eol)
        for lines, ended in zip((original, final), ends, strict=True)
    )
    diff = unified_diff(Document.from_text(old), new, "file")
    folder: Path = tmp_path_factory.mktemp("patch")
    (folder / "file").write_bytes(old.encode())
    if diff and new:  # git deletes a file that a patch empties
        command = ["git", "apply", "--whitespace=nowarn", "-"]
        subprocess.run(command, input=diff.encode(), cwd=folder, check=True)
    assert (folder / "file").read_bytes() == (new if diff and new else old).encode()
