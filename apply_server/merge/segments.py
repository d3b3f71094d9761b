"""Splices a snippet's segments into the file: match, choose, place, write."""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.merge.candidates import Candidates
from apply_server.merge.certainty import margins
from apply_server.merge.chain import Problem, best_chain
from apply_server.merge.lines import Lines, width
from apply_server.merge.model import Merge
from apply_server.merge.placement import place
from apply_server.merge.structure import Scope, scopes
from apply_server.merge.writer import Writer
from apply_server.snippet import Edit


def merge_segments(original_lines: Sequence[str], edit: Edit, language: str | None) -> Merge:
    """Merge a lazy or patch edit. Raises AmbiguousTarget and AnchorNotFound."""
    snippet = Lines([line for part in edit.segments for line in part.lines], language)
    original = Lines(original_lines, language)
    bounds = _bounds(edit)
    depths = [-1 if part.marker is None else width(part.marker) for part in edit.segments]
    scope = scopes(snippet, original, bounds, depths)
    problem = _problem(snippet, original, bounds, scope, edit)
    chain = best_chain(problem)
    markers = [part.marker for part in edit.segments]
    whole = edit.dialect == "patch"
    placed = place(problem, chain, snippet, original, scope, markers, whole)
    return Writer(snippet, original, margins(problem, chain)).write(placed)


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
