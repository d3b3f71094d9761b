"""Splices a snippet's segments into the file: match, choose, place, write."""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.errors import AmbiguousTarget
from apply_server.merge.candidates import Candidates
from apply_server.merge.chain import Chain, Problem, alternatives, best_chain
from apply_server.merge.hunks import HunkBuilder
from apply_server.merge.indent import Reindent, Style, fit, style_of
from apply_server.merge.lines import Lines
from apply_server.merge.model import Anchor, Merge
from apply_server.merge.placement import Placed, place
from apply_server.merge.structure import Scope, scopes
from apply_server.snippet import Edit

_TIE = 0.1
_CLEAR = 0.35


def merge_segments(original_lines: Sequence[str], edit: Edit, language: str | None) -> Merge:
    """Merge a lazy or patch edit. Raises AmbiguousTarget and AnchorNotFound."""
    snippet = Lines([line for part in edit.segments for line in part.lines], language)
    original = Lines(original_lines, language)
    bounds = _bounds(edit)
    scope = scopes(snippet, original)
    problem = _problem(snippet, original, bounds, scope, edit)
    chain = best_chain(problem)
    margins = _margins(problem, chain)
    markers = [part.marker for part in edit.segments]
    whole = edit.dialect == "patch"
    placed = place(problem, chain, snippet, original, scope, markers, whole)
    return _Writer(snippet, original, margins).write(problem, placed)


def _problem(
    snippet: Lines,
    original: Lines,
    bounds: tuple[tuple[int, int], ...],
    scope: Scope,
    edit: Edit,
) -> Problem:
    candidates = Candidates(snippet, original, bounds, scope, edit.leading, edit.trailing)
    return Problem(
        bounds,
        len(snippet),
        len(original),
        edit.leading,
        edit.trailing,
        tuple(candidates.collect()),
        *candidates.loose(),
    )


def _bounds(edit: Edit) -> tuple[tuple[int, int], ...]:
    bounds = []
    at = 0
    for segment in edit.segments:
        bounds.append((at, at + len(segment.lines)))
        at += len(segment.lines)
    return tuple(bounds)


def _margins(problem: Problem, chain: Chain) -> dict[int, tuple[float, list[int]]]:
    """Row → (how much worse the best other place is, all places about as good)."""
    through = alternatives(problem, chain)
    chosen = {problem.matches[at].row: problem.matches[at].column for at in chain.path}
    margins: dict[int, tuple[float, list[int]]] = {}
    for match, total in zip(problem.matches, through, strict=True):
        if match.row not in chosen:
            continue
        margin, columns = margins.get(match.row, (chain.score, []))
        if chosen[match.row] != match.column:
            margin = min(margin, chain.score - total)
        if chain.score - total <= _TIE:
            columns = [*columns, match.column]
        margins[match.row] = (margin, columns)
    return margins


class _Writer:
    """Turns placed segments into hunks in the file's indentation."""

    def __init__(
        self, snippet: Lines, original: Lines, margins: dict[int, tuple[float, list[int]]]
    ) -> None:
        self._snippet, self._original, self._margins = snippet, original, margins
        self._styles: tuple[Style, Style] = (style_of(snippet.raw), style_of(original.raw))
        self._builder = HunkBuilder(original.raw)
        self._doubts: list[str] = []

    def write(self, problem: Problem, placed: Sequence[Placed]) -> Merge:
        for segment in placed:
            self._segment(segment)
        return self._builder.merge(self._doubts)

    def _segment(self, segment: Placed) -> None:
        count = len(self._builder.hunks)
        self._refuse_ties(segment)
        reindent = self._reindent(segment)
        anchor, confidence = self._anchor(segment), self._confidence(segment)
        at, pending = segment.start, []
        for row in range(segment.first, segment.last):
            column = segment.matched.get(row)
            line = self._line(row, column, reindent, row == segment.first)
            if column is None:
                pending.append(line)
                continue
            self._builder.replace(at, column, pending, anchor, confidence)
            self._builder.replace(column, column + 1, [line], anchor, confidence)
            at, pending = column + 1, []
        self._builder.replace(at, segment.end, pending, anchor, confidence)
        if segment.doubt:
            self._doubts.append(segment.doubt)
        elif len(self._builder.hunks) > count and confidence < 0.5:
            self._doubts.append("Another place in the file fits nearly as well.")

    def _refuse_ties(self, segment: Placed) -> None:
        telling = [
            row for row in segment.matched if not self._snippet.common(row) and row in self._margins
        ]
        if not telling or segment.start == 0 or segment.end == len(self._original):
            return
        best = max(telling, key=lambda row: self._margins[row][0])
        margin, columns = self._margins[best]
        if margin <= _TIE and len(columns) > 1:
            lines = [column + 1 for column in columns]
            raise AmbiguousTarget(
                f"The snippet fits lines {', '.join(map(str, lines))} equally well: "
                f"{self._snippet.text[best][:80]!r}. Add the lines around it.",
                {"lines": lines, "snippet": self._snippet.text[best]},
            )

    def _confidence(self, segment: Placed) -> float:
        margins = [
            self._margins[row][0]
            for row in segment.matched
            if row in self._margins and not self._snippet.common(row)
        ]
        return min(1.0, max(margins, default=_CLEAR) / (2 * _CLEAR))

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
        symbols = self._snippet.symbols, self._original.symbols
        named = any(
            symbols[0][row] is not None and symbols[0][row] == symbols[1][segment.matched[row]]
            for row in telling
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
        if same and not reindent.identity:
            return theirs
        if first and self._snippet.depth[row] == 0 < self._original.depth[column]:
            indent = theirs[: len(theirs) - len(theirs.lstrip())]
            return indent + raw
        return line
