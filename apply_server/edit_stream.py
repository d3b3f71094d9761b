"""Line edits while a rewrite is still being written: each as soon as later lines settle it.

Previews are made of these. This module must not know about documents, models or tokens: text comes
in pieces of any size, in the model's view, and edits in the original's lines go out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence

from apply_server.document import split_lines
from apply_server.line_diff import LineEdit, line_edits

# A copied run this long settles any deletion before it: only a moved block could be so long.
_CERTAIN = 16
# Lines that occur several times need company before they count as a place.
_COMMON_RUN = 3
# Bounds that keep repetitive files linear: where a run may begin, how many are followed.
_OCCURRENCES = 4
_RUNS = 16


def view_lines(view: str, *, joined: bool) -> list[str]:
    """A view's lines. `joined`: lines are separated, not ended, so "a\\n" is "a" and ""."""
    lines = [line.text for line in split_lines(view)]
    return [*lines, ""] if joined and view.endswith(("\n", "\r")) else lines


class EditStream:
    """Turns a rewrite, fed in pieces, into ascending disjoint edits in the original's lines.

    All edits together make the final lines exactly, and the same ones however the text was cut.
    While the text follows the original nothing is held back. After a divergence lines are held
    until a copied run shows where the original goes on; then the section between is compared.
    A run settles that only if it is as long as the lines it gives up for deleted (at most
    `_CERTAIN`), so that a block that was moved or copied up doesn't pass for a deletion. Edits are
    smallest within a section, not over the whole text: for that compare the finished text.
    """

    def __init__(self, original_lines: Sequence[str]) -> None:
        self._original = original_lines
        self._places: dict[str, list[int]] = defaultdict(list)
        for number, line in enumerate(original_lines):
            self._places[line].append(number)
        self._passed = 0
        self._held: list[str] = []
        self._runs: dict[int, int] = {}  # where a copied run goes on -> its length so far
        self._named: set[int] = set()  # those of them that hold a line the original has once
        self._rest: list[str] = []  # pieces of the unfinished line

    @property
    def progress(self) -> int:
        """How many of the original's lines have been passed for good."""
        return self._passed

    def feed(self, chunk: str) -> list[LineEdit]:
        """Take the next piece of the view; the edits that it settled."""
        if not chunk:
            return []
        # A CR at the end may be half of a CRLF, so it waits for what follows.
        if not any(eol in chunk for eol in "\r\n") and not self._ends_with_cr():
            self._rest.append(chunk)
            return []
        lines = split_lines("".join((*self._rest, chunk)))
        open_ended = lines[-1].eol in ("", "\r")
        self._rest = [lines[-1].text + lines[-1].eol] if open_ended else []
        return self._take(line.text for line in (lines[:-1] if open_ended else lines))

    def finish(self) -> list[LineEdit]:
        """The text is complete: the edits that nothing had settled."""
        rest = "".join(self._rest)
        self._rest = []
        if self._original:
            edits = self._take(view_lines(rest, joined=False))
        else:
            # Lines of an empty original are joined, so the last one counts though it be empty.
            self._held += view_lines(rest, joined=True) or ([""] if self._held else [])
            edits = []
        return edits + self._settle(len(self._original), len(self._held))

    def _ends_with_cr(self) -> bool:
        return bool(self._rest) and self._rest[-1].endswith("\r")

    def _take(self, lines: Iterable[str]) -> list[LineEdit]:
        return [edit for line in lines for edit in self._take_line(line)]

    def _take_line(self, line: str) -> list[LineEdit]:
        following = self._passed < len(self._original) and not self._held
        if following and line == self._original[self._passed]:
            self._passed += 1
            return []
        self._held.append(line)
        self._extend_runs(line)
        for end, length in self._runs.items():
            if self._settled(end, length):
                edits = self._settle(end - length, len(self._held) - length)
                self._passed = end
                return edits
        return []

    def _extend_runs(self, line: str) -> None:
        """Follow the runs that go on with this line, nearest first, and begin new ones."""
        places = self._places.get(line, [])
        nearest = bisect_left(places, self._passed)
        grown = {place + 1: 1 for place in places[nearest : nearest + _OCCURRENCES]}
        for end, length in self._runs.items():
            if end < len(self._original) and self._original[end] == line:
                grown[end + 1] = length + 1
        kept = sorted(grown, key=lambda end: (-grown[end], end))[:_RUNS]
        self._runs = {end: grown[end] for end in kept}
        self._named = {end for end in kept if len(places) == 1 or end - 1 in self._named}

    def _settled(self, end: int, length: int) -> bool:
        skipped = end - length - self._passed
        if end in self._named:
            return length >= min(skipped, _CERTAIN)
        return length >= _COMMON_RUN + skipped

    def _settle(self, end: int, held: int) -> list[LineEdit]:
        """Original lines up to `end` against the first `held` lines held back."""
        start = self._passed
        section = line_edits(self._original[start:end], self._held[:held])
        self._passed, self._held, self._runs, self._named = end, [], {}, set()
        return [LineEdit(start + edit.start, start + edit.end, edit.lines) for edit in section]
