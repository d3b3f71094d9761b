"""The best order-preserving chain of line matches: what the snippet keeps, adds and drops.

Sparse dynamic programming over candidate matches. Within a segment lines that are left out of the
chain are insertions (snippet) or deletions (original) and cost; between segments stands a marker
and original lines are free. Must not know what makes two lines match.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

INSERT = 0.02
DELETE_OPEN = 0.35
DELETE = 0.05
DELETE_BETWEEN = 0.02
ADJACENT = 0.15
IMPLIED_EDGE = 1.2
UNPLACED = 1.0
UNVOUCHED = 0.12


@dataclass(frozen=True, slots=True)
class Match:
    """Snippet row `row` is original line `column`; `score` says how sure that is by itself."""

    row: int
    column: int
    score: float


@dataclass(frozen=True, slots=True)
class Problem:
    """`segments` are (first row, end row), `rows` of the snippet, `columns` of the original.

    `leading` and `trailing`: a marker stands before the first and after the last segment.
    `matches` ascend by row, then column. `loose_above` and `loose_below` are rows that have only
    telling-nothing lines between them and the marker above or below: they don't vouch for a
    deletion on their other side. `start_vouches`: a snippet whose first line stands inside the file
    deletes what is above; else it only left out its first marker. `tolls[column]`: what dropping
    that line costs besides, when new lines take its place.
    """

    segments: tuple[tuple[int, int], ...]
    rows: int
    columns: int
    leading: bool
    trailing: bool
    matches: tuple[Match, ...]
    loose_above: frozenset[int] = frozenset()
    loose_below: frozenset[int] = frozenset()
    start_vouches: bool = False
    tolls: tuple[float, ...] = ()

    def without(self, pairs: Collection[tuple[int, int]]) -> Problem:
        """The same problem with some (row, column) matches ruled out."""
        kept = tuple(match for match in self.matches if (match.row, match.column) not in pairs)
        return replace(self, matches=kept)

    def reversed(self) -> Problem:
        """The same problem read from the end."""
        return Problem(
            tuple((self.rows - end, self.rows - start) for start, end in self.segments[::-1]),
            self.rows,
            self.columns,
            self.trailing,
            self.leading,
            tuple(
                Match(self.rows - 1 - m.row, self.columns - 1 - m.column, m.score)
                for m in self.matches[::-1]
            ),
            frozenset(self.rows - 1 - row for row in self.loose_below),
            frozenset(self.rows - 1 - row for row in self.loose_above),
            start_vouches=True,
            tolls=self.tolls[::-1],
        )


@dataclass(frozen=True, slots=True)
class Chain:
    """`path`: indices into the problem's matches. `from_start`, `to_end`: the file's edges hold.

    `totals[k]`: the best score of any chain up to and including match k.
    """

    path: tuple[int, ...]
    score: float
    from_start: bool
    to_end: bool
    totals: tuple[float, ...]


_NONE = -1
_START = -2


class _PrefixMax:
    """Best (value, item) among the keys below a key; sparse, so that it is cheap to start over."""

    __slots__ = ("_size", "_tree")

    def __init__(self, size: int) -> None:
        self._size = size + 2
        self._tree: dict[int, tuple[float, int]] = {}

    def add(self, key: int, value: float, item: int) -> None:
        at, tree = key + 2, self._tree
        while at <= self._size:
            held = tree.get(at)
            if held is None or held[0] < value:
                tree[at] = (value, item)
            at += at & -at

    def below(self, key: int) -> tuple[float, int] | None:
        at, best, tree = key + 1, None, self._tree
        while at > 0:
            held = tree.get(at)
            if held is not None and (best is None or held[0] > best[0]):
                best = held
            at -= at & -at
        return best


class _Finished:
    """Where the segments so far can end: best (value, item) with everything below a column."""

    def __init__(self, ends: Sequence[tuple[int, float, int]]) -> None:
        self._columns: list[int] = []
        self._best: list[tuple[float, int]] = []
        for column, value, item in sorted(ends, key=lambda end: end[0]):
            if self._best and self._best[-1][0] >= value:
                continue
            self._columns.append(column)
            self._best.append((value, item))

    def below(self, column: int) -> tuple[float, int] | None:
        at = bisect_left(self._columns, column)
        return self._best[at - 1] if at else None

    def shifted(self, cost: float) -> list[tuple[int, float, int]]:
        return [
            (column, value - cost, item)
            for column, (value, item) in zip(self._columns, self._best, strict=True)
        ]


class _Segment:
    """The open part of one segment: matches so far, as predecessors of the next."""

    def __init__(self, problem: Problem, tolls: Sequence[float]) -> None:
        self._above, self._below = problem.loose_above, problem.loose_below
        self._start_vouches = problem.start_vouches
        self._tolls = tolls
        self._matches = problem.matches
        columns = problem.columns
        self._inside = _PrefixMax(columns)
        self._dear = _PrefixMax(columns)
        self._at_column: dict[int, tuple[float, int]] = {}
        self._last_row: dict[int, tuple[float, int]] = {}
        self._row = _NONE

    def add(self, row: int, scored: Sequence[tuple[int, float, int]]) -> None:
        self._last_row = {column: (value, item) for column, value, item in scored}
        self._row = row
        for column, value, item in scored:
            key = value + INSERT * row
            held = self._at_column.get(column)
            if held is None or held[0] < key:
                self._at_column[column] = (key, item)
            toll = self._tolls[column + 1]
            self._dear.add(column, key + UNVOUCHED * column + toll, item)
            if row not in self._above:
                self._inside.add(column, key + DELETE * column + toll, item)

    def _neighbours(self, column: int, score: float) -> list[tuple[float, int]]:
        """From the row above: a plain continuation, or a deletion that names both neighbours.

        What a continuation adds depends on both lines, so that it is the same read backwards.
        """
        ways = []
        for above, (value, item) in self._last_row.items():
            gap = column - 1 - above
            if gap == 0:
                score = min(score, self._matches[item].score if item >= 0 else 1.0)
                ways.append((value + min(ADJACENT, score / 2), item))
            elif gap > 0:
                ways.append((value - DELETE_OPEN - DELETE_BETWEEN * gap, item))
        return ways

    def before(self, row: int, column: int, score: float = 1.0) -> list[tuple[float, int]]:
        """Ways to reach (row, column) from inside the segment."""
        ways: list[tuple[float, int]] = []
        if row == 0 and column > 0 and not self._start_vouches:
            return ways
        if self._row == row - 1:
            ways.extend(self._neighbours(column, score))
        if column - 1 in self._at_column:
            value, item = self._at_column[column - 1]
            ways.append((value - INSERT * (row - 1), item))
        spent = INSERT * (row - 1) + DELETE_OPEN + self._tolls[column]
        dear = self._dear.below(column - 1)
        if dear is not None:
            ways.append((dear[0] - spent - UNVOUCHED * (column - 1), dear[1]))
        inside = None if row in self._below else self._inside.below(column - 1)
        if inside is not None:
            ways.append((inside[0] - spent - DELETE * (column - 1), inside[1]))
        return ways


def best_chain(problem: Problem) -> Chain:
    """The chain with the highest score. O(matches × log columns)."""
    search = _Search(problem)
    tolls = list(accumulate(problem.tolls or (0.0,) * problem.columns, initial=0.0))
    entry = _Finished([(-1, 0.0 if problem.leading else -IMPLIED_EDGE, _NONE)])
    for first, end in problem.segments:
        segment = _Segment(problem, tolls)
        before, length = entry, INSERT * (end - first)
        ends = entry.shifted(length + UNPLACED)
        if first == 0 and not problem.leading:
            segment.add(-1, [(-1, 0.0, _START)])
            ends.append((-1, -length, _START))
        ends.extend(search.extend(segment, entry, first, end))
        entry = _Finished(ends)
    return search.finish(segment, before, entry)


class _Search:
    """Totals and back pointers of the matches, filled segment by segment."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._totals: list[float] = []
        self._back: list[int] = []

    def extend(
        self, segment: _Segment, entry: _Finished, first: int, end: int
    ) -> list[tuple[int, float, int]]:
        """Score the matches of rows `first` to `end`; the ways in which the segment can end."""
        matches = self._problem.matches
        ends: list[tuple[int, float, int]] = []
        while len(self._totals) < len(matches) and matches[len(self._totals)].row < end:
            row, scored = matches[len(self._totals)].row, []
            while len(self._totals) < len(matches) and matches[len(self._totals)].row == row:
                item = len(self._totals)
                scored.append((matches[item].column, self._score(segment, entry, first), item))
            segment.add(row, scored)
            rest = INSERT * (end - 1 - row)
            ends.extend((column, value - rest, item) for column, value, item in scored)
        return ends

    def _score(self, segment: _Segment, entry: _Finished, first: int) -> float:
        match = self._problem.matches[len(self._totals)]
        ways = segment.before(match.row, match.column, match.score)
        outside = entry.below(match.column)
        if outside is not None:
            ways.append((outside[0] - INSERT * (match.row - first), outside[1]))
        value, item = max(ways, key=lambda way: way[0])
        self._totals.append(value + match.score)
        self._back.append(item)
        return self._totals[-1]

    def finish(self, segment: _Segment, before: _Finished, after: _Finished) -> Chain:
        """`before` and `after` the last segment, the open part of which is `segment`."""
        problem = self._problem
        first, end = problem.segments[-1]
        value, item = _reached(after, problem.columns)
        ends = [(value - (0.0 if problem.trailing else IMPLIED_EDGE), item, False)]
        if not problem.trailing:
            closing = segment.before(problem.rows, problem.columns)
            ends.extend((value, item, True) for value, item in closing)
            value, item = _reached(before, problem.columns)
            ends.append((value - INSERT * (end - first), item, True))
        score, item, to_end = max(ends, key=lambda way: way[0])
        path: list[int] = []
        while item >= 0:
            path.append(item)
            item = self._back[item]
        return Chain(tuple(path[::-1]), score, item == _START, to_end, tuple(self._totals))


def _reached(finished: _Finished, column: int) -> tuple[float, int]:
    best = finished.below(column)
    assert best is not None
    return best


def alternatives(problem: Problem, chain: Chain) -> list[float]:
    """For each match, the best score of any chain through it."""
    mirror = best_chain(problem.reversed()).totals[::-1]
    return [
        ahead + behind - match.score
        for ahead, behind, match in zip(chain.totals, mirror, problem.matches, strict=True)
    ]
