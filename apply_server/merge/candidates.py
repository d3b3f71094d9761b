"""The pairs of a snippet line and an original line that may be the same line.

Must not choose among them. Bounded: every row offers few pairs, so that the choice stays cheap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

from apply_server.merge.chain import Match
from apply_server.merge.lines import is_closer
from apply_server.merge.similarity import similar
from apply_server.merge.splice import Splice

_OFTEN = 48
_REACH = 40
_SMALL = 1200
_OTHER_DEPTH = 0.8
_OTHER_DEPTH_UNSURE = 0.3
_OUTSIDE = 0.45
_CLOSES = 0.9
_FRESH = 0.4
_CHANGED = 1.3
_MOVED = 0.8
_RENAMED = 0.35
_HIDDEN = 0.3
_BESIDE_MARKER = 0.3
_CLOSES_HIDDEN = 0.4


class Candidates:
    """Collects the matches of one snippet in one original."""

    def __init__(self, splice: Splice) -> None:
        self._splice, self._segments = splice, splice.segments
        self._snippet, self._original = splice.snippet, splice.original
        self._scope = splice.scope
        self._bonus = [0.0] * len(splice.snippet)
        self._found: dict[tuple[int, int], float] = {}

    def collect(self) -> list[Match]:
        for first, end in self._segments:
            self._segment(first, end)
        return [Match(row, column, score) for (row, column), score in sorted(self._found.items())]

    def loose(self) -> tuple[frozenset[int], frozenset[int]]:
        """Rows with nothing telling between them and the marker above, and the one below."""
        above: set[int] = set()
        below: set[int] = set()
        for first, end in self._segments:
            telling = [
                row
                for row in range(first, end)
                if self._is_telling(row) or self._scope.closes[row] >= 0
            ]
            if self._splice.below_marker(first):
                above.update(range(first, telling[0] if telling else end))
            if self._splice.above_marker(end):
                below.update(range(telling[-1] + 1 if telling else first, end))
        return frozenset(above), frozenset(below)

    def _segment(self, first: int, end: int) -> None:
        self._expect_context(first, end)
        telling = [row for row in range(first, end) if self._is_telling(row)]
        shift = self._shift(telling)
        anchors: list[tuple[int, int]] = []
        for row in telling:
            for column in self._original.places[self._snippet.norm[row]]:
                anchors.append((row, column))
                self._add(row, column, 1.0, shift)
        anchors.extend(self._closers(first, end))
        if not self._splice.below_marker(first):
            anchors.append((-1, -1))
        if not self._splice.above_marker(end):
            anchors.append((end, len(self._original)))
        rest = [row for row in range(first, end) if row not in set(telling)]
        fuzzy = self._similar(range(first, end), anchors, shift)
        fuzzy += self._renamed(first, end, shift)
        self._common(rest, anchors + fuzzy, shift)

    def _expect_context(self, first: int, end: int) -> None:
        """Lines beside a marker, and brackets that close what a marker hides, are the file's."""
        filled = [row for row in range(first, end) if self._snippet.text[row]]
        if self._splice.below_marker(first):
            self._bonus[filled[0]] += _BESIDE_MARKER
        if self._splice.above_marker(end):
            self._bonus[filled[-1]] += _BESIDE_MARKER
        for row in filled:
            if self._scope.opener[row] < first and is_closer(self._snippet.text[row]):
                self._bonus[row] += _CLOSES_HIDDEN

    def _is_telling(self, row: int) -> bool:
        places = self._original.places.get(self._snippet.norm[row], ())
        if not 0 < len(places) <= _OFTEN:
            return False
        return not self._snippet.common(row)

    def _shift(self, rows: Iterable[int]) -> int:
        """How much deeper the original's lines are than the segment's; 0 if any agrees."""
        votes: Counter[int] = Counter()
        for row in rows:
            places = self._original.places[self._snippet.norm[row]]
            for column in places:
                votes[self._original.depth[column] - self._snippet.depth[row]] += 1
        return 0 if votes[0] or not votes else votes.most_common(1)[0][0]

    def _add(self, row: int, column: int, share: float, shift: int) -> None:
        snippet, original = self._snippet, self._original
        score = share * snippet.weight(
            row, len(original.places.get(snippet.norm[row], ())) if share == 1.0 else 1
        )
        if original.depth[column] - snippet.depth[row] != shift and snippet.text[row]:
            sure = share == 1.0 and not snippet.common(row)
            score *= _OTHER_DEPTH if sure else _OTHER_DEPTH_UNSURE
        if share == 1.0 and not self._scope.fresh[row]:
            score += self._bonus[row]
        if column < self._scope.floor[row]:
            score *= _HIDDEN
        area = self._scope.inside[row]
        if area is not None and not area[0] <= column < area[1]:
            score *= _OUTSIDE
        if self._scope.closes[row] == column:
            score = max(score, _CLOSES)
        elif self._scope.fresh[row]:
            score *= _FRESH
        self._found[row, column] = max(score, self._found.get((row, column), 0.0))

    def _closers(self, first: int, end: int) -> list[tuple[int, int]]:
        found = []
        for row in range(first, end):
            column = self._scope.closes[row]
            if column >= 0 and self._original.norm[column] == self._snippet.norm[row]:
                self._add(row, column, 1.0, 0)
                found.append((row, column))
        return found

    def _similar(
        self, rows: Iterable[int], anchors: Sequence[tuple[int, int]], shift: int
    ) -> list[tuple[int, int]]:
        """Changed lines: near the anchors, or anywhere in a small file."""
        found: list[tuple[int, int]] = []
        windows = self._windows(anchors)
        taken = set(self._snippet.norm)
        choices = {
            column: self._original.norm[column].lower()
            for start, stop in windows
            for column in range(start, stop)
            if self._original.norm[column] not in taken and not self._original.common(column)
        }
        for row in rows:
            if self._snippet.common(row) or self._scope.fresh[row]:
                continue
            symbol = self._snippet.symbols[row]
            pairs = similar(self._snippet.norm[row], symbol, choices, self._original)
            exact = self._snippet.norm[row] in self._original.places
            for column, ratio in pairs:
                self._add(row, column, (ratio - 0.5) * (_MOVED if exact else _CHANGED), shift)
                found.append((row, column))
        return found

    def _renamed(self, first: int, end: int, shift: int) -> list[tuple[int, int]]:
        """Headers that structure found under another name."""
        found = []
        for row in range(first, end):
            column = self._scope.resolved[row]
            if column >= 0 and (row, column) not in self._found:
                self._add(row, column, _RENAMED, shift)
                found.append((row, column))
        return found

    def _windows(self, anchors: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        size = len(self._original)
        if size <= _SMALL:
            return [(0, size)]
        columns = sorted({column for _, column in anchors})
        windows: list[tuple[int, int]] = []
        for column in columns:
            start, stop = max(0, column - _REACH), min(size, column + _REACH)
            if windows and start <= windows[-1][1]:
                windows[-1] = (windows[-1][0], stop)
            else:
                windows.append((start, stop))
        return windows or [(0, size)]

    def _common(self, rows: Sequence[int], anchors: Sequence[tuple[int, int]], shift: int) -> None:
        """Lines that tell nothing match only near lines that do."""
        for row in rows:
            places = self._original.places.get(self._snippet.norm[row])
            if not places:
                continue
            for column in self._near(row, places, anchors):
                if self._scope.fresh[row] and (row - 1, column - 1) not in self._found:
                    continue
                self._add(row, column, 1.0, shift)

    def _near(
        self, row: int, places: Sequence[int], anchors: Sequence[tuple[int, int]]
    ) -> list[int]:
        near: set[int] = set()
        for anchor_row, anchor_column in anchors:
            if abs(anchor_row - row) > _REACH:
                continue
            straight = anchor_column + row - anchor_row
            low = bisect_left(places, min(straight, anchor_column) - _REACH // 2)
            high = bisect_right(places, max(straight, anchor_column) + _REACH // 2)
            near.update(places[low:high])
        return sorted(near)
