"""Splices a snippet's segments into the file: match, choose, place, write."""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.merge.blanks import settle_blanks
from apply_server.merge.candidates import Candidates
from apply_server.merge.certainty import margins
from apply_server.merge.chain import Chain, Problem, best_chain
from apply_server.merge.consistency import (
    Alignment,
    astray,
    beside_marker,
    borrowed,
    crossing,
    doubled,
    moved,
)
from apply_server.merge.model import Merge
from apply_server.merge.placement import Placed, place
from apply_server.merge.splice import Splice, splice_of
from apply_server.merge.writer import Writer
from apply_server.snippet import Edit

_ROUNDS = 3
_UNNAMED = 0.3


def merge_segments(original_lines: Sequence[str], edit: Edit, language: str | None) -> Merge:
    """Merge a lazy or patch edit. Raises AmbiguousTarget and AnchorNotFound."""
    splice = splice_of(original_lines, edit, language)
    problem, chain, placed, settled = _consistent(splice, problem_of(splice))
    view = _view(splice, placed)
    writer = Writer(splice.snippet, splice.original, margins(problem, chain))
    if not settled:
        writer.doubt("The snippet's lines are found in places that contradict each other.")
    runs, told = doubled(view), set[int]()
    for run in runs:
        first, end, line = run
        told.update(range(first, end))
        if moved(view, run):
            placed.append(_removal(splice, end, line, line + end - first))
        elif end - first > 1 or beside_marker(view, run):
            writer.doubt("Lines that the file already has elsewhere would be there twice.")
    if astray(view) - told:
        writer.doubt("A line beside a marker may show where the change is, or be new itself.")
    return writer.write(sorted(placed, key=lambda segment: segment.start))


def problem_of(splice: Splice) -> Problem:
    candidates = Candidates(splice)
    return Problem(
        splice.segments,
        len(splice.snippet),
        len(splice.original),
        splice.leading,
        splice.trailing,
        tuple(candidates.collect()),
        *candidates.loose(),
        tolls=_tolls(splice),
    )


def _tolls(splice: Splice) -> tuple[float, ...]:
    """A definition that the snippet never names is rarely what its new lines replace."""
    named = splice.snippet.symbol_places
    return tuple(
        _UNNAMED
        if symbol is not None and symbol.kind == "definition" and symbol not in named
        else 0.0
        for symbol in splice.original.symbols
    )


def _consistent(splice: Splice, problem: Problem) -> tuple[Problem, Chain, list[Placed], bool]:
    """Solve, look for contradictions, and solve again without the matches that cause them.

    The last value tells whether none is left after that.
    """
    for left in reversed(range(_ROUNDS)):
        chain = best_chain(problem)
        placed = place(splice, problem, chain)
        for segment in placed:
            settle_blanks(segment, splice.snippet, splice.original)
        view = _view(splice, placed)
        banned = borrowed(view).union(*(crossing(view, run) for run in doubled(view)))
        if not banned or not left:
            break
        # What is returned belongs together, so nothing is ruled out that isn't solved again.
        problem = problem.without(banned)
    return problem, chain, placed, not banned


def _view(splice: Splice, placed: Sequence[Placed]) -> Alignment:
    hidden = [True] * len(splice.original)
    matched: dict[int, int] = {}
    for segment in placed:
        hidden[segment.start : segment.end] = [False] * (segment.end - segment.start)
        matched.update(segment.matched)
    kept = hidden.copy()
    for row, column in matched.items():
        kept[column] = splice.snippet.norm[row] == splice.original.norm[column]
    return Alignment(splice, matched, tuple(kept), tuple(hidden))


def _removal(splice: Splice, row: int, start: int, stop: int) -> Placed:
    """Takes moved lines from their old place, and one of two blank lines that then meet."""
    text = splice.original.text
    loose = start > 0 and not text[start - 1] and stop < len(text) and not text[stop]
    return Placed(row, row, start, stop + 1 if loose else stop, {})
