"""The text of an open document, kept in step with the editor's by its changes.

Lines end where LSP says, at LF, CRLF and CR only. Must not know versions or messages.
"""

from __future__ import annotations

from apply_server.document import PositionEncoding, character_index, split_lines
from apply_server.lsp.protocol import Position, Range


class Mirror:
    """A text as lines, each with its ending, so that a change costs what it changes."""

    def __init__(self, text: str) -> None:
        self._lines = _split(text)

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self._lines)

    @property
    def line_count(self) -> int:
        """Lines with an ending, and the rest after the last one."""
        return len(self._lines)

    def replace(self, place: Range, text: str, encoding: PositionEncoding) -> None:
        """Put `text` in place of a range. Places outside the text are its nearest ones."""
        (line, at), (end_line, end) = sorted(
            (self._index(place.start, encoding), self._index(place.end, encoding))
        )
        # A CR and an LF may meet at either seam, so the lines beside the change are split again.
        first, last = max(line - 1, 0), end_line + 2
        before = "".join(self._lines[first:line]) + self._line(line)[:at]
        after = self._line(end_line)[end:] + "".join(self._lines[end_line + 1 : last])
        self._lines[first:last] = _split(before + text + after)

    def _index(self, position: Position, encoding: PositionEncoding) -> tuple[int, int]:
        """Line and index into it."""
        if position.line < 0:
            return 0, 0
        if position.line >= len(self._lines):
            ended = not self._lines or self._lines[-1].endswith(("\r", "\n"))
            last = len(self._lines) if ended else len(self._lines) - 1
            return last, len(self._line(last))
        line = self._lines[position.line].rstrip("\r\n")
        return position.line, character_index(line, position.character, encoding)

    def _line(self, number: int) -> str:
        return self._lines[number] if number < len(self._lines) else ""


def _split(text: str) -> list[str]:
    return [line.text + line.eol for line in split_lines(text)]
