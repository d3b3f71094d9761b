"""Splices a snippet's segments into the file: match, choose, place, write."""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.merge.candidates import Candidates
from apply_server.merge.certainty import margins
from apply_server.merge.chain import Chain, Problem, best_chain
from apply_server.merge.consistency import Alignment, borrowed, crossing, doubled, moved
from apply_server.merge.lines import Lines, width
from apply_server.merge.model import Merge
from apply_server.merge.placement import Placed, place
from apply_server.merge.structure import Scope, scopes
from apply_server.merge.writer import Writer
from apply_server.snippet import Edit

_ROUNDS = 3


def merge_segments(original_lines: Sequence[str], edit: Edit, language: str | None) -> Merge:
    """Merge a lazy or patch edit. Raises AmbiguousTarget and AnchorNotFound."""
    snippet = Lines([line for part in edit.segments for line in part.lines], language)
    original = Lines(original_lines, language)
    bounds = _bounds(edit)
    depths = [-1 if part.marker is None else width(part.marker) for part in edit.segments]
    scope = scopes(snippet, original, bounds, depths)
    splice = _Splice(snippet, original, scope, edit, bounds)
    problem = _problem(snippet, original, bounds, scope, edit)
    return splice.consistent(problem)


class _Splice:
    """One merge: solves, looks for contradictions, and solves again without their cause."""

    def __init__(
        self,
        snippet: Lines,
        original: Lines,
        scope: Scope,
        edit: Edit,
        bounds: tuple[tuple[int, int], ...],
    ) -> None:
        self._snippet, self._original, self._scope = snippet, original, scope
        self._edit, self._bounds = edit, bounds

    def consistent(self, problem: Problem) -> Merge:
        for _ in range(_ROUNDS):
            chain = best_chain(problem)
            placed = self._place(problem, chain)
            view = self._view(placed)
            banned = borrowed(view)
            for run in doubled(view):
                banned |= crossing(view, run)
            if not banned:
                break
            problem = problem.without(banned)
        writer = Writer(self._snippet, self._original, margins(problem, chain))
        for run in doubled(view):
            self._settle_doubled(view, run, placed, writer)
        return writer.write(sorted(placed, key=lambda segment: segment.start))

    def _place(self, problem: Problem, chain: Chain) -> list[Placed]:
        markers = [part.marker for part in self._edit.segments]
        whole = self._edit.dialect == "patch"
        return place(problem, chain, self._snippet, self._original, self._scope, markers, whole)

    def _view(self, placed: Sequence[Placed]) -> Alignment:
        kept = [True] * len(self._original)
        matched: dict[int, int] = {}
        for segment in placed:
            kept[segment.start : segment.end] = [False] * (segment.end - segment.start)
            matched.update(segment.matched)
        hidden = tuple(kept)
        for row, column in matched.items():
            kept[column] = self._snippet.norm[row] == self._original.norm[column]
        return Alignment(
            self._snippet,
            self._original,
            self._scope,
            self._bounds,
            matched,
            tuple(kept),
            hidden,
        )

    def _settle_doubled(
        self, view: Alignment, run: tuple[int, int, int], placed: list[Placed], writer: Writer
    ) -> None:
        """A move takes the lines from their old place; longer repetitions are doubtful."""
        first, end, place = run
        if moved(view, run):
            stop = place + end - first
            placed.append(Placed(end, end, place, self._with_blank(place, stop), {}))
        elif end - first > 1:
            writer.doubt("Lines that the file already has elsewhere would be there twice.")

    def _with_blank(self, start: int, stop: int) -> int:
        text = self._original.text
        loose = start > 0 and not text[start - 1] and stop < len(text) and not text[stop]
        return stop + 1 if loose else stop


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
