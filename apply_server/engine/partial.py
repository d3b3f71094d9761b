"""What can be said of a result while it is still being written, and what has to be corrected.

Must not know how the text comes about, nor who shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from apply_server.edits import EditStream, LineEdit
from apply_server.engine.base import Delta, Done, EngineEvent, Verified
from apply_server.view import ModelView


@dataclass(slots=True)
class Confirmed:
    """Follows the lines of an answer; knows how far original and result are settled."""

    view: ModelView
    lines: int = 0  # of the answer, read so far
    edits: list[LineEdit] = field(default_factory=list)
    _stream: EditStream = field(init=False)
    _blank: list[str] = field(default_factory=list)
    _begun: bool = False

    def __post_init__(self) -> None:
        self._stream = EditStream(self.view.lines)

    @property
    def original_line(self) -> int:
        """How many of the document's lines are settled."""
        passed = self._stream.progress
        whole = passed == len(self.view.lines)
        return len(self.view.document.lines) if whole else self.view.first + passed

    @property
    def result_line(self) -> int:
        """How many of the result's lines are settled."""
        grown = sum(len(edit.lines) - (edit.end - edit.start) for edit in self.edits)
        return self.original_line + grown

    @property
    def copied_share(self) -> float:
        """The share of the settled lines that the original had."""
        written = sum(len(edit.lines) for edit in self.edits)
        return 1 - written / max(1, self.result_line)

    def feed(self, lines: Sequence[str]) -> tuple[LineEdit, ...]:
        """The next complete lines of the answer; the edits of the document that they settle."""
        self.lines += len(lines)
        return self._settled(self._stream.feed("".join(self._within(lines))))

    def finish(self) -> tuple[LineEdit, ...]:
        """The answer is complete: the edits that nothing had settled."""
        return self._settled(self._stream.finish())

    def _settled(self, edits: Iterable[LineEdit]) -> tuple[LineEdit, ...]:
        settled = tuple(map(self.view.to_document, edits))
        self.edits += settled
        return settled

    def _within(self, lines: Sequence[str]) -> Iterator[str]:
        """Without blank lines at either end, which an answer can't bring (see ModelView)."""
        for line in lines:
            if not line.strip(" \t\r\n"):
                self._blank.append(line)
                continue
            if self._begun:
                yield from self._blank
            self._blank.clear()
            self._begun = True
            yield line


@dataclass(slots=True)
class Shown:
    """What a person has been shown of a result: the preview, then what was decided.

    `original` are the document's lines, `preview` the edits shown first.
    """

    original: Sequence[str]
    preview: Sequence[LineEdit] = ()
    _at: int = 0
    _pending: list[LineEdit] = field(default_factory=list)
    _decided: list[LineEdit] = field(default_factory=list)

    def follow(self, event: EngineEvent) -> Iterator[EngineEvent]:
        """The event, and the Delta that it makes necessary."""
        match event:
            case Verified(original_line=line, edits=edits):
                yield event
                yield from self._decide(line, edits)
            case Done(edits=edits):
                yield from self._finish(edits)
                yield event
            case _:
                yield event

    def _decide(self, line: int, edits: Sequence[LineEdit]) -> Iterator[Delta]:
        self._pending += edits
        # What is inserted before a line is settled with the line; after the last, with the end.
        to = self._boundary(min(line, len(self.original) - 1))
        taken = [edit for edit in self._pending if edit.start < to]
        shown = [edit for edit in self.preview if self._at <= edit.start < to]
        if not self._same(self._at, to, taken, shown):
            yield Delta(self._at, to, tuple(taken))
        self._pending = self._pending[len(taken) :]
        self._decided += taken
        self._at = to

    def _boundary(self, line: int) -> int:
        """The last line up to `line` that no edit, shown or decided, reaches across."""
        to = max(line, self._at)
        for edit in sorted((*self.preview, *self._pending), key=lambda edit: -edit.start):
            if edit.start < to < edit.end:
                to = edit.start
        return to

    def _finish(self, edits: Sequence[LineEdit]) -> Iterator[Delta]:
        """What wasn't decided on the way; all of it where what was doesn't add up to the result."""
        end = len(self.original)
        before = [edit for edit in edits if edit.start < self._at]
        rest = [edit for edit in self.preview if edit.start >= self._at]
        fits = all(edit.end <= self._at for edit in before)
        if fits and self._same(0, self._at, before, self._decided):
            after = edits[len(before) :]
            if not self._same(self._at, end, after, rest):
                yield Delta(self._at, end, tuple(after))
        elif not self._same(0, end, edits, [*self._decided, *rest]):
            yield Delta(0, end, tuple(edits))

    def _same(
        self, start: int, end: int, one: Sequence[LineEdit], other: Sequence[LineEdit]
    ) -> bool:
        """Whether both make the same text of these lines."""
        return one == other or self._text(start, end, one) == self._text(start, end, other)

    def _text(self, start: int, end: int, edits: Sequence[LineEdit]) -> list[str]:
        result: list[str] = []
        at = start
        for edit in edits:
            result += (*self.original[at : edit.start], *edit.lines)
            at = edit.end
        return [*result, *self.original[at:end]]
