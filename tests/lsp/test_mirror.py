"""The mirror of an open document against the plain way: offsets into the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.document import Document, PositionEncoding
from apply_server.document import Position as DocumentPosition
from apply_server.lsp.mirror import Mirror
from apply_server.lsp.protocol import Position, Range

TEXT = st.text(st.sampled_from(["a", "é", "😋", "\n", "\r", "\x0c", "\u2028", "\x85"]))
PLACES = st.builds(Position, st.integers(0, 8), st.integers(0, 9))
ENCODINGS: list[PositionEncoding] = ["utf-8", "utf-16", "utf-32"]


def plainly(text: str, place: Range, new: str, encoding: PositionEncoding) -> str:
    document = Document.from_text(text)
    start, end = sorted(
        document.offset(DocumentPosition(at.line, at.character), encoding)
        for at in (place.start, place.end)
    )
    return text[:start] + new + text[end:]


@settings(deadline=None)
@given(TEXT, st.lists(st.tuples(PLACES, PLACES, TEXT), max_size=5), st.sampled_from(ENCODINGS))
def test_changes_add_up_to_the_same_text(
    text: str, changes: list[tuple[Position, Position, str]], encoding: PositionEncoding
) -> None:
    mirror = Mirror(text)
    for start, end, new in changes:
        place = Range(start, end)
        text = plainly(text, place, new, encoding)
        mirror.replace(place, new, encoding)
        assert mirror.text == text
        # The next change's places are right only if the lines are.
        assert mirror.line_count == len(Document.from_text(text).lines)


@pytest.mark.parametrize(
    ("text", "place", "new", "encoding", "expected"),
    [
        ("öbc\nend\n", (0, 2, 0, 2), "a", "utf-8", "öabc\nend\n"),
        ("ö😋c\n", (0, 3, 0, 3), "a", "utf-16", "ö😋ac\n"),
        ("ö😋c\n", (0, 2, 0, 2), "a", "utf-32", "ö😋ac\n"),
        ("a\x0cb\nc\n", (1, 0, 1, 1), "X", "utf-16", "a\x0cb\nX\n"),
        ("a\u2028b\nc", (1, 0, 1, 1), "X", "utf-16", "a\u2028b\nX"),
        ("a\r\nb\rc\n", (2, 0, 2, 1), "X", "utf-16", "a\r\nb\rX\n"),
        ("", (0, 0, 0, 0), "X", "utf-16", "X"),
        ("a\n", (1, 0, 1, 0), "X", "utf-16", "a\nX"),
        ("a", (7, 7, 9, 9), "X", "utf-16", "aX"),
        ("a\rb", (1, 0, 1, 0), "\n", "utf-16", "a\r\nb"),
        ("a\r\nb", (0, 1, 1, 0), "", "utf-16", "ab"),
    ],
)
def test_what_editors_have_met(
    text: str, place: tuple[int, int, int, int], new: str, encoding: PositionEncoding, expected: str
) -> None:
    mirror = Mirror(text)
    line, character, end_line, end = place
    mirror.replace(Range(Position(line, character), Position(end_line, end)), new, encoding)
    assert mirror.text == expected
