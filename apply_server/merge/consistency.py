"""Contradictions in a chain that no single match shows: borrowed bodies, moved and doubled lines.

Must not score matches; it rules some out, or says what is moved or doubtful.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apply_server.merge.lines import Lines
from apply_server.merge.splice import Splice
from apply_server.merge.structure import Scope

_NEXT = 3


@dataclass(frozen=True, slots=True)
class Alignment:
    """A splice with the chosen row → column.

    `kept[column]`: the line stays as it is; `hidden[column]`: a marker covers it.
    """

    splice: Splice
    matched: Mapping[int, int]
    kept: Sequence[bool]
    hidden: Sequence[bool]

    @property
    def snippet(self) -> Lines:
        return self.splice.snippet

    @property
    def original(self) -> Lines:
        return self.splice.original

    @property
    def scope(self) -> Scope:
        return self.splice.scope

    def owner(self, column: int) -> int:
        """The line that opens the block around `column`, -1 at the top level."""
        level = self.original.level
        above = column - 1
        while above >= 0 and not (
            0 <= level[above] < level[column] and self.original.text[above] not in {"{", "("}
        ):
            above -= 1
        return above


def borrowed(view: Alignment) -> set[tuple[int, int]]:
    """Matches that give a new block the body of one that stays: no line is in both."""
    return {
        (row, column)
        for row, column in view.matched.items()
        if view.scope.fresh[row]
        and view.original.text[column]
        and (owner := view.owner(column)) >= 0
        and view.kept[owner]
        and _untouched(view, owner)
        and not _below(view, row, owner)
    }


def _untouched(view: Alignment, owner: int) -> bool:
    """The block of `owner` stays behind a marker, wholly or in part."""
    rows = [row for row, column in view.matched.items() if column == owner]
    return not rows or rows[0] in view.scope.hides


def _below(view: Alignment, row: int, owner: int) -> bool:
    """In the snippet too `row` is somewhere below `owner`."""
    while row >= 0:
        if view.matched.get(row) == owner:
            return True
        row = view.scope.header[row]
    return False


def doubled(view: Alignment) -> list[tuple[int, int, int]]:
    """Runs (first row, end row, column) of new lines that the file has once, and keeps."""
    runs: list[tuple[int, int, int]] = []
    for row in range(len(view.snippet)):
        column = _only_place(view, row)
        if column < 0:
            continue
        if runs and runs[-1][1] <= row and _joins(view, runs[-1], row, column):
            first, _, start = runs[-1]
            runs[-1] = (first, row + 1, start)
        else:
            runs.append((row, row + 1, column))
    return runs


def crossing(view: Alignment, run: tuple[int, int, int]) -> set[tuple[int, int]]:
    """The matches that keep a doubled run beside a marker from its place, if they may be moved.

    Lines beside a marker are there to show the place; what stands between them may be new there.
    """
    first, end, place = run
    bounds = view.splice.bounds(first)
    if not beside_marker(view, run):
        return set()
    found = {
        (row, column)
        for row, column in view.matched.items()
        if (row < first and column >= place) or (row >= end and column < place + end - first)
    }
    edges = {bounds[0], bounds[1] - 1}
    return set() if any(row in edges for row, _ in found) else found


def moved(view: Alignment, run: tuple[int, int, int]) -> bool:
    """Whether the run's lines change places within one block rather than being repeated."""
    first, end, place = run
    bounds = view.splice.bounds(first)
    near = [
        view.matched[row]
        for row in range(*bounds)
        if row in view.matched
        and view.original.text[view.matched[row]]
        and view.original.level[view.matched[row]] == view.original.level[place]
    ]
    rows = [row for row in range(first, end) if view.snippet.text[row]]
    if not near or any(_only_place(view, row) < 0 for row in rows):
        return False
    if len(rows) == 1 and not _complete(view, first):
        return False
    same_level = view.snippet.level[first] == view.original.level[place]
    return same_level and view.owner(near[0]) == view.owner(place)


def _complete(view: Alignment, row: int) -> bool:
    """One line that is a whole thing of its own, with a name."""
    text = view.snippet.text[row]
    balanced = all(text.count(one) == text.count(other) for one, other in ("()", "[]", "{}"))
    return balanced and view.snippet.symbols[row] is not None


def _only_place(view: Alignment, row: int) -> int:
    """The kept line that the unmatched telling `row` repeats, if the file has just one."""
    if row in view.matched or view.snippet.common(row):
        return -1
    places = view.original.places.get(view.snippet.norm[row], ())
    if len(places) != 1 or not view.hidden[places[0]]:
        return -1
    # A new block may well say what another one says, unless that one is the next.
    return -1 if view.scope.fresh[row] and not _near_segment(view, row, places[0]) else places[0]


def _near_segment(view: Alignment, row: int, column: int) -> bool:
    first, end = view.splice.bounds(row)
    held = [view.matched[at] for at in range(first, end) if at in view.matched]
    return bool(held) and min(held) - _NEXT <= column <= max(held) + _NEXT


def _joins(view: Alignment, run: tuple[int, int, int], row: int, column: int) -> bool:
    first, _, start = run
    if column - start != row - first:
        return False
    return all(
        view.snippet.norm[at] == view.original.norm[start + at - first] and at not in view.matched
        for at in range(first, row)
    )


def beside_marker(view: Alignment, run: tuple[int, int, int]) -> bool:
    """Nothing stands between the run and the marker above or below: it shows the place."""
    first, end, _ = run
    bounds = view.splice.bounds(first)
    text, splice = view.snippet.text, view.splice
    above = not any(text[bounds[0] : first]) and splice.below_marker(bounds[0])
    below = not any(text[end : bounds[1]]) and splice.above_marker(bounds[1])
    return above or below


def astray(view: Alignment) -> set[int]:
    """Rows beside a marker that are new, though a line just past the segment's place says the same.

    They may be there to show where a change begins or ends, and not to be added.
    """
    return {
        edge
        for first, end in view.splice.segments
        for rows, step, marker in (
            (range(first, end), -1, view.splice.below_marker(first)),
            (range(first, end)[::-1], 1, view.splice.above_marker(end)),
        )
        if marker and (edge := _astray(view, rows, step)) >= 0
    }


def _astray(view: Alignment, rows: range, step: int) -> int:
    """`rows` lead away from the marker, `step` back to it in the file; -1 if all is well."""
    edge = next((row for row in rows if view.snippet.text[row]), -1)
    held = next((row for row in rows if row in view.matched), -1)
    if edge < 0 or held < 0 or edge in view.matched or view.scope.opener[edge] in rows:
        return -1
    start = view.matched[held] + step
    near = range(start, start + step * (abs(held - edge) + _NEXT), step)
    said = {view.original.norm[at] for at in near if 0 <= at < len(view.original)}
    return edge if view.snippet.norm[edge] in said else -1
