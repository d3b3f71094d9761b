"""Which lines of one text became which of another: a smallest set of line edits.

This module must not know about documents, line endings, models or files: lines are strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import LCSseq


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Lines `start` up to `end` (from 0, end exclusive) of the original become `lines`.

    `lines` carry no line endings. `start == end` inserts before line `start`.
    """

    start: int
    end: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines `start:end` of the original against lines `new_start:new_end` of the final text."""

    start: int
    end: int
    new_start: int
    new_end: int

    def moved(self, by: int) -> _Hunk:
        return _Hunk(self.start + by, self.end + by, self.new_start + by, self.new_end + by)


def line_edits(original: Sequence[str], final: Sequence[str]) -> tuple[LineEdit, ...]:
    """A smallest set of edits that turns `original` into `final`, ascending, never adjacent.

    The lines in no edit are a longest common subsequence of the two, so no edit's replaced lines
    have a line in common with what replaces them. Time O(len(original) * len(final) / 64) on what
    is left between the common head and tail once lines that only one side has are set aside.
    """
    hunks = list(_hunks(original, final))
    for index, hunk in enumerate(hunks):
        before = hunks[index - 1].end if index else 0
        after = hunks[index + 1].start if index + 1 < len(hunks) else len(original)
        hunks[index] = _slide(hunk, original, final, hunk.start - before, after - hunk.end)
    return tuple(
        LineEdit(hunk.start, hunk.end, tuple(final[hunk.new_start : hunk.new_end]))
        for hunk in _joined(hunks)
    )


def _hunks(original: Sequence[str], final: Sequence[str]) -> Iterator[_Hunk]:
    """The gaps between the matched lines."""
    at, new_at = 0, 0
    ends = (len(original), len(final))
    for match, new_match in (*_matches(original, final), ends):
        if match > at or new_match > new_at:
            yield _Hunk(at, match, new_at, new_match)
        at, new_at = match + 1, new_match + 1


def _matches(original: Sequence[str], final: Sequence[str]) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence, ascending."""
    shorter = min(len(original), len(final))
    head = next((i for i in range(shorter) if original[i] != final[i]), shorter)
    rest = shorter - head
    tail = next((i for i in range(rest) if original[-1 - i] != final[-1 - i]), rest)
    middle = _middle_matches(original, final, head, tail)
    ends = ((len(original) - i, len(final) - i) for i in range(tail, 0, -1))
    return [*((i, i) for i in range(head)), *middle, *ends]


def _middle_matches(
    original: Sequence[str], final: Sequence[str], head: int, tail: int
) -> Iterator[tuple[int, int]]:
    """The matches between a common head and tail of these lengths."""
    left, right = range(head, len(original) - tail), range(head, len(final) - tail)
    # A line that only one side has can't be matched; without those the sequences are short.
    # Numbers stand for lines because the library compares hashes, and small ones don't collide.
    numbers = {line: n for n, line in enumerate({original[i] for i in left})}
    new_kept = [j for j in right if final[j] in numbers]
    common = {final[j] for j in new_kept}
    kept = [i for i in left if original[i] in common]
    opcodes = LCSseq.opcodes(
        [numbers[original[i]] for i in kept], [numbers[final[j]] for j in new_kept]
    )
    for code in opcodes:
        if code.tag == "equal":
            sources = kept[code.src_start : code.src_end]
            yield from zip(sources, new_kept[code.dest_start : code.dest_end], strict=True)


def _slide(hunk: _Hunk, original: Sequence[str], final: Sequence[str], up: int, down: int) -> _Hunk:
    """Move a pure insertion or deletion to where a person would have put it.

    A block may move past an equal line on its other side, at most `up` lines up or `down` down.
    """
    if hunk.start == hunk.end:
        lines, start, end = final, hunk.new_start, hunk.new_end
    elif hunk.new_start == hunk.new_end:
        lines, start, end = original, hunk.start, hunk.end
    else:
        return hunk
    first, last = 0, 0
    while first > -up and lines[start + first - 1] == lines[end + first - 1]:
        first -= 1
    while last < down and lines[start + last] == lines[end + last]:
        last += 1
    # Of equally good places the lowest, as in git.
    return hunk.moved(
        min(
            range(last, first - 1, -1),
            key=lambda by: _boundary_cost(lines, start + by) + _boundary_cost(lines, end + by),
        )
    )


def _boundary_cost(lines: Sequence[str], at: int) -> int:
    """How much the place before `lines[at]` looks like the inside of something.

    Little indentation is good, the place after a blank line better than the one before it.
    """
    if at >= len(lines):
        return 0
    if not lines[at].strip():
        return 2 * _indentation(lines[at + 1 : at + 2])
    return 2 * _indentation(lines[at : at + 1]) - (at == 0 or not lines[at - 1].strip())


def _indentation(lines: Sequence[str]) -> int:
    return sum(len(line) - len(line.lstrip()) for line in lines)


def _joined(hunks: Sequence[_Hunk]) -> Iterator[_Hunk]:
    """Hunks that slid up against each other are one."""
    pending: _Hunk | None = None
    for hunk in hunks:
        if pending is not None and pending.end == hunk.start:
            pending = _Hunk(pending.start, hunk.end, pending.new_start, hunk.new_end)
            continue
        if pending is not None:
            yield pending
        pending = hunk
    if pending is not None:
        yield pending
