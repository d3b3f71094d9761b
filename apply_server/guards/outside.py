"""Changes far from everything the edit names. Must not know how the places were found."""

from __future__ import annotations

from collections.abc import Iterator

from apply_server.guards.model import Finding, GuardInput, Level
from apply_server.guards.scope import Scope, near
from apply_server.line_diff import LineEdit

NAME = "outside-hunks"


def outside_hunks(given: GuardInput, scope: Scope) -> Iterator[Finding]:
    """One finding for each place outside the snippet's hunks, or far from all that is named.

    It blocks where a snippet's hunks are known and most of the lines lost there are lines that the
    edit has no word of. Where the edit's words are all there is, and no change is near any of
    them, they tell nothing.
    """
    near_one = any(near(scope.claimed, row) for edit in given.edits for row in _rows(edit))
    if not scope.claimed or scope.asks_for_all() or not (near_one or scope.exact):
        return
    gone = frozenset(given.gone())
    for edit in given.edits:
        finding = _replacement(edit, gone, scope) if edit.end > edit.start else None
        if finding := finding or _insertion(edit, scope):
            yield finding


def _rows(edit: LineEdit) -> range:
    """The rows that an edit takes; of an insertion those on both sides of it."""
    if edit.start < edit.end:
        return range(edit.start, edit.end)
    return range(edit.start - 1, edit.start + 1)


def _replacement(edit: LineEdit, gone: frozenset[int], scope: Scope) -> Finding | None:
    original = scope.given.original
    far = [row for row in _rows(edit) if original[row].strip() and not near(scope.claimed, row)]
    if not far:
        return None
    unnamed = [row for row in far if row in gone and not scope.mentions(original[row])]
    level: Level = "block" if scope.exact and 2 * len(unnamed) > len(far) else "warn"
    lines = tuple(row + 1 for row in far)
    return Finding(
        NAME,
        level,
        f"{_lines(lines)} of the file changed, which the edit doesn't seem to be about; look at "
        "the diff there.",
        lines,
        "original",
    )


def _insertion(edit: LineEdit, scope: Scope) -> Finding | None:
    """Instructions ask for new code without saying where, so only a snippet's place is known."""
    stray = scope.exact and edit.start == edit.end and any(line.strip() for line in edit.lines)
    if not stray or any(near(scope.claimed, row) for row in _rows(edit)):
        return None
    return Finding(
        NAME,
        "warn",
        f"Lines were added after line {edit.start}, where the snippet has none; look at the diff "
        "there.",
        (edit.start,),
        "original",
    )


def _lines(lines: tuple[int, ...]) -> str:
    if len(lines) == 1:
        return f"Line {lines[0]}"
    return f"Lines {lines[0]} to {lines[-1]}"
