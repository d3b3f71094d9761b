"""How sure a chain is: what each of its matches is worth over the best chain without it.

Must not decide where lines go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apply_server.merge.chain import Chain, Problem, alternatives

TIE = 0.1
_CLEAR = 0.7


@dataclass(frozen=True, slots=True)
class Margin:
    """`gap` to the best chain that rules the match out; `rivals` are the row's equal columns."""

    gap: float
    score: float
    rivals: tuple[int, ...]

    @property
    def confidence(self) -> float:
        """1 when clear of the rest by as much as a telling line is worth, or by all it is worth."""
        return max(0.0, min(1.0, max(self.gap / _CLEAR, 0.9 * self.gap / max(self.score, 0.2))))


def margins(problem: Problem, chain: Chain) -> dict[int, Margin]:
    """Row → margin, for the rows of the chain."""
    through = alternatives(problem, chain)
    owner = _segment_of(problem)
    by_segment: dict[int, list[int]] = {}
    for at, match in enumerate(problem.matches):
        by_segment.setdefault(owner[match.row], []).append(at)
    found = {}
    for at in chain.path:
        match = problem.matches[at]
        gap, rivals = chain.score, []
        for other in by_segment[owner[match.row]]:
            if not _excludes(problem, at, other):
                continue
            behind = chain.score - through[other]
            gap = min(gap, behind)
            if behind <= TIE and problem.matches[other].row == match.row:
                rivals.append(problem.matches[other].column)
        found[match.row] = Margin(gap, match.score, tuple(sorted([*rivals, match.column])))
    return found


def _segment_of(problem: Problem) -> Sequence[int]:
    owner = []
    for number, (first, end) in enumerate(problem.segments):
        owner.extend([number] * (end - first))
    return owner


def _excludes(problem: Problem, one: int, other: int) -> bool:
    """No chain holds both: the same row or column, or in the opposite order."""
    if one == other:
        return False
    ours, theirs = problem.matches[one], problem.matches[other]
    return (ours.row <= theirs.row) != (ours.column < theirs.column) or (
        ours.row == theirs.row or ours.column == theirs.column
    )
