"""Turns placed segments into hunks, in the file's indentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from apply_server.errors import AmbiguousTarget
from apply_server.merge.certainty import TIE, Margin
from apply_server.merge.hunks import HunkBuilder
from apply_server.merge.indent import Reindent, fit, style_of
from apply_server.merge.lines import Lines, width
from apply_server.merge.model import Anchor, Merge
from apply_server.merge.placement import Placed

_ENOUGH = 0.5
_MANY = 6


class Writer:
    """Writes segments in order; `margins`: row → how sure its match is."""

    def __init__(self, snippet: Lines, original: Lines, margins: Mapping[int, Margin]) -> None:
        self._snippet, self._original, self._margins = snippet, original, margins
        self._styles = (style_of(snippet.raw), style_of(original.raw))
        self._builder = HunkBuilder(original.raw)
        self._doubts: list[str] = []

    def write(self, placed: Sequence[Placed]) -> Merge:
        for segment in placed:
            self._segment(segment)
        return self._builder.merge(self._doubts)

    def doubt(self, why: str) -> None:
        self._doubts.append(why)

    def _segment(self, segment: Placed) -> None:
        self._refuse_ties(segment)
        reindent = self._reindent(segment)
        anchor, least = self._anchor(segment), 1.0
        at, pending = segment.start, list[str]()
        for row in range(segment.first, segment.last):
            if row in segment.dropped:
                continue
            column = segment.matched.get(row)
            line = self._line(row, column, reindent, row == segment.first)
            if column is None:
                pending.append(line)
                continue
            self._question_loss(segment, row, at, column, len(pending))
            sure = self._confidence(segment, row)
            if self._builder.replace(at, column, pending, anchor, sure):
                least = min(least, sure)
            if self._builder.replace(column, column + 1, [line], anchor, sure):
                least = min(least, sure)
            at, pending = column + 1, []
        self._question_loss(segment, segment.last, at, segment.end, len(pending))
        sure = self._confidence(segment, segment.last)
        if self._builder.replace(at, segment.end, pending, anchor, sure):
            least = min(least, sure)
        if segment.doubt:
            self.doubt(segment.doubt)
        if least < _ENOUGH:
            self.doubt("Another place in the file fits nearly as well.")

    def _question_loss(self, segment: Placed, row: int, start: int, end: int, added: int) -> None:
        """Dropping many lines before `row` takes lines on both sides that are surely the file's."""
        lost = sum(1 for text in self._original.text[start:end] if text)
        if lost - added < _MANY:
            return
        above = [other for other in sorted(segment.matched) if other < row][-1:]
        below = [other for other in sorted(segment.matched) if other >= row][:1]
        sides = [(other, -1) for other in above] + [(other, 1) for other in below]
        edge = (start == 0 and segment.at_start) or (row == segment.last and segment.at_end)
        if edge or not all(self._tells(segment, other, step) for other, step in sides):
            self.doubt("A long stretch would go, between lines that occur elsewhere too.")

    def _tells(self, segment: Placed, row: int, step: int) -> bool:
        """Unbroken lines from `row` on lead to one that the file has once."""
        column = segment.matched[row]
        while segment.matched.get(row) == column:
            norm = self._snippet.norm[row]
            if norm != self._original.norm[column]:
                return False
            if not self._snippet.common(row) and len(self._original.places[norm]) == 1:
                return True
            row, column = row + step, column + step
        return False

    def _refuse_ties(self, segment: Placed) -> None:
        telling = self._telling(segment)
        if not telling or segment.start == 0 or segment.end == len(self._original):
            return
        best = max(telling, key=lambda row: self._margins[row].gap)
        margin = self._margins[best]
        if margin.gap <= TIE and len(margin.rivals) > 1:
            lines = [column + 1 for column in margin.rivals]
            raise AmbiguousTarget(
                f"The snippet fits lines {', '.join(map(str, lines))} equally well: "
                f"{self._snippet.text[best][:80]!r}. Add the lines around it.",
                {"lines": lines, "snippet": self._snippet.text[best]},
            )

    def _telling(self, segment: Placed) -> list[int]:
        return [
            row
            for row in sorted(segment.matched)
            if row in self._margins and not self._snippet.common(row)
        ]

    def _confidence(self, segment: Placed, row: int) -> float:
        """Of what stands at `row`: the less sure of its two sides.

        Between two lines that are sure the result is the snippet, however its lines pair up, so a
        side is as sure as its surest line; the file's own edge is sure. Outside the outermost
        sure line, a line that replaces another stands for itself.
        """
        telling = self._telling(segment)
        above = [self._margins[other].confidence for other in telling if other < row]
        below = [self._margins[other].confidence for other in telling if other >= row]
        sides = [
            max(side)
            for side, edge in ((above, segment.at_start), (below, segment.at_end))
            if side and not edge
        ]
        open_side = (not above and not segment.at_start) or (not below and not segment.at_end)
        if open_side and row in telling:
            sides.append(self._margins[row].confidence)
        return min(sides, default=1.0)

    def _anchor(self, segment: Placed) -> Anchor:
        telling = [row for row in segment.matched if not self._snippet.common(row)]
        if not telling:
            return "edge"
        pairs = [
            (self._snippet.raw[row], self._original.raw[segment.matched[row]]) for row in telling
        ]
        if any(ours == theirs for ours, theirs in pairs):
            return "exact"
        if any(ours.strip() == theirs.strip() for ours, theirs in pairs):
            return "indent"
        ours, theirs = self._snippet.symbols, self._original.symbols
        named = any(
            ours[row] is not None and ours[row] == theirs[segment.matched[row]] for row in telling
        )
        return "symbol" if named else "fuzzy"

    def _reindent(self, segment: Placed) -> Reindent:
        pairs = [
            (row, column) for row, column in segment.matched.items() if self._snippet.text[row]
        ]
        same = [
            pair for pair in pairs if self._snippet.norm[pair[0]] == self._original.norm[pair[1]]
        ]
        return fit(
            [(self._snippet.raw[row], self._original.raw[column]) for row, column in same or pairs],
            *self._styles,
        )

    def _line(self, row: int, column: int | None, reindent: Reindent, first: bool) -> str:
        raw = self._snippet.raw[row]
        line = reindent.line(raw)
        if column is None:
            return line
        theirs = self._original.raw[column]
        same = self._snippet.text[row] == self._original.text[column]
        if same and (not line.strip() or self._as_deep(line, theirs, reindent)):
            return theirs
        if first and self._snippet.depth[row] == 0 < self._original.depth[column]:
            line = theirs[: len(theirs) - len(theirs.lstrip())] + raw
        return line + _trailing(theirs) if same and not _trailing(line) else line

    @staticmethod
    def _as_deep(line: str, theirs: str, reindent: Reindent) -> bool:
        return not reindent.identity and width(line) == width(theirs)


def _trailing(line: str) -> str:
    """The whitespace at a line's end, which snippets lose more often than they mean to."""
    return line[len(line.rstrip()) :]
