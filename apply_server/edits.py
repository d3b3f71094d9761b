"""Line edits on a document: the text they make, a diff of it, and ranges for an editor.

What a model wrote decides the words of the lines it changed and nothing else: untouched lines keep
their bytes, changed ones their endings, the file its final newline. This module must not know
about models, tokens, files or LSP types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Postfix, Prefix

from apply_server.document import (
    BYTE_ORDER_MARK,
    Document,
    Line,
    Position,
    PositionEncoding,
    split_lines,
)
from apply_server.edit_stream import EditStream, view_lines
from apply_server.line_diff import LineEdit, line_edits

__all__ = [
    "EditStream",
    "LineEdit",
    "TextEdit",
    "apply_edits",
    "line_edits",
    "replacements",
    "rewrite",
    "text_edits",
    "unified_diff",
]

_CONTEXT = 3
_NO_NEWLINE = "\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class TextEdit:
    """The text from `start` to `end` (exclusive) becomes `new_text`."""

    start: Position
    end: Position
    new_text: str


def rewrite(document: Document, final_view: str) -> tuple[tuple[LineEdit, ...], str]:
    """The edits that turn `document` into a view a model wrote, and the text they make.

    `final_view` may use any line ending and have or lack a final newline: neither counts, except
    in an empty document, which takes the text with "\\n" endings as it is. Where the document has
    no final newline, blank lines at the end of the view are dropped. A byte order mark is no text:
    an editor's buffer that begins with one keeps it, and no other text gets one.
    """
    mark = BYTE_ORDER_MARK if document.text.startswith(BYTE_ORDER_MARK) and final_view else ""
    final_view = mark + final_view.removeprefix(BYTE_ORDER_MARK)
    final = view_lines(final_view, joined=not document.lines)
    while document.lines and not document.lines[-1].eol and final and not final[-1]:
        final.pop()
    edits = line_edits(document.line_texts(), final)
    return edits, apply_edits(document, edits)


def apply_edits(document: Document, edits: Sequence[LineEdit]) -> str:
    """The document's text after `edits` (ascending, not overlapping).

    Untouched lines keep their bytes. A replaced line has the ending of the line it replaces; an
    inserted one the previous line's, else the next one's, else the commonest. If the original has
    no final newline the result has none (a blank line can't end such a file and is dropped); an
    empty document takes the lines joined with "\\n".

    One exception, in files that mix lone CRs with LFs: a CR that would come to stand before
    another line's LF becomes LF, as the two would be read as one ending.
    """
    if not document.lines:
        return "\n".join(line for edit in edits for line in edit.lines)
    result: list[Line] = []
    at = 0
    for edit in edits:
        result += document.lines[at : edit.start]
        result += _new_lines(document, edit)
        at = edit.end
    result += document.lines[at:]
    return _joined(result, document)


def text_edits(
    document: Document, edits: Sequence[LineEdit], encoding: PositionEncoding
) -> tuple[TextEdit, ...]:
    """The same change as `apply_edits`, as small ranges in the original (see replacements)."""
    return replacements(document, apply_edits(document, edits), encoding)


def replacements(
    document: Document, final_text: str, encoding: PositionEncoding
) -> tuple[TextEdit, ...]:
    """Small ranges of the document and what they become in `final_text`, ascending and disjoint.

    Where as many lines came as went, each line has its own edit, without the characters that it
    keeps at either end. No range begins or ends inside a character or a line ending.
    """
    original = _raw(document.lines)
    final = _raw(split_lines(final_text))
    starts = [0]
    for line in original:
        starts.append(starts[-1] + len(line))
    result = []
    for edit in line_edits(original, final):
        for start, old, new in _pieces(edit, original):
            first, last, text = _narrowed(old, new)
            begin, end = starts[start] + first, starts[start] + last
            positions = document.position(begin, encoding), document.position(end, encoding)
            result.append(TextEdit(*positions, text))
    return tuple(result)


def unified_diff(document: Document, final_text: str, name: str) -> str:
    """The change as `git diff` prints it, with three lines of context; "" if there is none.

    Line endings are part of the lines, so a changed ending shows. A line that ends with a lone CR
    is shown as if it ended with CR LF.
    """
    original, final = _raw(document.lines), _raw(split_lines(final_text))
    edits = line_edits(original, final)
    if not edits:
        return ""
    shift = 0
    parts = [f"--- a/{name}\n", f"+++ b/{name}\n"]
    for group in _groups(edits):
        parts += _diff_hunk(original, group, shift)
        shift += sum(len(edit.lines) - (edit.end - edit.start) for edit in group)
    return "".join(parts)


def _new_lines(document: Document, edit: LineEdit) -> Iterator[Line]:
    lines = document.lines
    previous = lines[edit.end - 1].eol if edit.end else ""
    following = lines[edit.end].eol if edit.end < len(lines) else ""
    neighbours = previous or following or document.dominant_eol()
    replaced = lines[edit.start : edit.end]
    for index, text in enumerate(edit.lines):
        own = replaced[index].eol if index < len(replaced) else ""
        yield Line(text, own or neighbours)


def _joined(lines: list[Line], document: Document) -> str:
    """The lines' text, with the document's final-newline state and an ending on all before."""
    final_newline = bool(document.lines[-1].eol)
    while not final_newline and lines and not lines[-1].text:
        lines.pop()
    if not lines:
        return ""
    separator = document.dominant_eol()
    pieces = [lines[-1].text + (lines[-1].eol if final_newline else "")]
    for line in reversed(lines[:-1]):
        fuses = line.eol == "\r" and pieces[-1].startswith("\n")
        pieces.append(line.text + ("\n" if fuses else line.eol or separator))
    return "".join(reversed(pieces))


def _raw(lines: Sequence[Line]) -> list[str]:
    return [line.text + line.eol for line in lines]


def _pieces(edit: LineEdit, original: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """(first line, old text, new text): line by line where the counts agree, else all at once."""
    old = original[edit.start : edit.end]
    if len(old) != len(edit.lines):
        yield edit.start, "".join(old), "".join(edit.lines)
        return
    for index, pair in enumerate(zip(old, edit.lines, strict=True)):
        yield edit.start + index, *pair


def _narrowed(old: str, new: str) -> tuple[int, int, str]:
    """`old[first:last]` becomes the text: what is left between a common head and tail."""
    head = Prefix.similarity(old, new)
    if old[head - 1 : head] == "\r" and "\n" in (old[head : head + 1], new[head : head + 1]):
        head -= 1
    tail = Postfix.similarity(old[head:], new[head:])
    first, new_first = len(old) - tail, len(new) - tail
    splits = "\r" in (old[first - 1 : first], new[new_first - 1 : new_first])
    if splits and old[first : first + 1] == "\n":
        first, new_first = first + 1, new_first + 1
    return head, first, new[head:new_first]


def _groups(edits: Sequence[LineEdit]) -> Iterator[list[LineEdit]]:
    """Edits whose context would touch share a hunk."""
    group = [edits[0]]
    for edit in edits[1:]:
        if edit.start - group[-1].end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(edit)
    yield group


def _diff_hunk(original: Sequence[str], group: Sequence[LineEdit], shift: int) -> Iterator[str]:
    """`shift`: how many more lines the final text has than the original before this hunk."""
    start, end = max(group[0].start - _CONTEXT, 0), min(group[-1].end + _CONTEXT, len(original))
    grown = sum(len(edit.lines) - (edit.end - edit.start) for edit in group)
    ranges = _range(start, end - start), _range(start + shift, end - start + grown)
    yield "@@ -{} +{} @@\n".format(*ranges)
    at = start
    for edit in group:
        yield from _marked(" ", original[at : edit.start])
        yield from _marked("-", original[edit.start : edit.end])
        yield from _marked("+", edit.lines)
        at = edit.end
    yield from _marked(" ", original[at:end])


def _range(start: int, count: int) -> str:
    """A hunk header's range: from 1, but the line before it where it is empty."""
    return f"{start + 1}" if count == 1 else f"{start + (count > 0)},{count}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line + ("" if line.endswith("\n") else "\n")
        if not line.endswith(("\n", "\r")):
            yield _NO_NEWLINE
