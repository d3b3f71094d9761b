"""Collects line replacements in ascending order and joins neighbours into hunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from apply_server.merge.model import Anchor, Hunk, Merge

_WEAKEST: tuple[Anchor, ...] = ("fuzzy", "edge", "symbol", "indent", "exact")


@dataclass(slots=True)
class HunkBuilder:
    """`original` are the lines that the replacements refer to."""

    original: Sequence[str]
    hunks: list[Hunk] = field(default_factory=list)

    def replace(
        self, start: int, end: int, lines: Sequence[str], anchor: Anchor, confidence: float
    ) -> bool:
        """Lines `start` to `end` become `lines`; equal lines at both ends are left out.

        Returns whether anything changes.
        """
        new = list(lines)
        while start < end and new and self.original[start] == new[0]:
            start, new = start + 1, new[1:]
        while start < end and new and self.original[end - 1] == new[-1]:
            end, new = end - 1, new[:-1]
        if start == end and not new:
            return False
        hunk = Hunk(start, end, tuple(new), anchor, confidence)
        if self.hunks and self.hunks[-1].end == start:
            hunk = _joined(self.hunks.pop(), hunk)
        self.hunks.append(hunk)
        return True

    def result(self) -> tuple[str, ...]:
        lines: list[str] = []
        at = 0
        for hunk in self.hunks:
            lines.extend(self.original[at : hunk.start])
            lines.extend(hunk.lines)
            at = hunk.end
        lines.extend(self.original[at:])
        return tuple(lines)

    def merge(self, doubts: Sequence[str]) -> Merge:
        confidence = min((hunk.confidence for hunk in self.hunks), default=1.0)
        return Merge(
            self.result(), tuple(self.hunks), confidence, not doubts, tuple(dict.fromkeys(doubts))
        )


def _joined(one: Hunk, other: Hunk) -> Hunk:
    anchor = min(one.anchor, other.anchor, key=_WEAKEST.index)
    return Hunk(
        one.start,
        other.end,
        one.lines + other.lines,
        anchor,
        min(one.confidence, other.confidence),
    )
