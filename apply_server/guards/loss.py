"""Results that lost their end or most of the file, or have their end twice.

Must not know which words an instruction uses to ask for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apply_server.guards.model import Finding, GuardInput, Level
from apply_server.guards.scope import Scope
from apply_server.snippet.text import split_lines

TRUNCATED = "truncated"
MOSTLY_GONE = "mostly-gone"
DUPLICATED_TAIL = "duplicated-tail"
# As lines are shorter or longer than others, fewer of them count as most: 50% go with 60%.
_LINES_PER_CHARACTERS = 5 / 6


def truncated(given: GuardInput, scope: Scope) -> Iterator[Finding]:
    """The end of the original is missing: nothing, or the beginning of a line, stands for it.

    Where something else came in its place, or a snippet without a merge ends so, the end may have
    been meant: that is only a warning.
    """
    tail = given.edits[-1] if given.edits else None
    if tail is None or tail.end < len(given.original) or scope.asks_for_all():
        return
    lost = [row for row in given.gone() if row >= tail.start and not scope.may_go(row)]
    new = [line for line in tail.lines if line.strip()]
    if not lost or 2 * len(new) > len(lost):
        return
    cut = all(_begins_one(line, given.original[tail.start :]) for line in new)
    level: Level = "block" if cut and not _ends_as_asked(given) else "warn"
    yield Finding(
        TRUNCATED,
        level,
        f"The end of the file is missing, from line {lost[0] + 1} of the original on; try again, "
        "or say in the edit that it is to go.",
        tuple(row + 1 for row in lost),
        "original",
    )


def mostly_gone(given: GuardInput, scope: Scope) -> Iterator[Finding]:
    """More characters, and lines, are gone than may be, and the edit doesn't say so."""
    if scope.asks_for_all():
        return
    lines, characters = 0, 0
    for edit in given.edits:
        rows = [row for row in range(edit.start, edit.end) if not scope.may_go(row)]
        lines += max(0, len(rows) - len(edit.lines))
        lost = _length([given.original[row] for row in rows])
        characters += max(0, lost - _length(edit.lines))
    whole = _length(given.original)
    most_lines = given.max_removal * _LINES_PER_CHARACTERS * len(given.original)
    if lines > most_lines and characters > given.max_removal * whole:
        yield Finding(
            MOSTLY_GONE,
            "block",
            f"{characters / whole:.0%} of the file is gone, though the edit doesn't ask for that; "
            "try again, or say in the edit what is to go.",
        )


def duplicated_tail(given: GuardInput) -> Iterator[Finding]:
    """The last lines of the result stand there twice in a row, and neither text had them so."""
    filled = [(row, line) for row, line in enumerate(given.final) if line.strip()]
    lines = [line for _, line in filled]
    length = _repeated_end(lines)
    twice = lines[len(lines) - 2 * length :]
    if not length or not given.edits:
        return
    asked = [line for line in split_lines(given.snippet) if line.strip()]
    if _ends_with([line for line in given.original if line.strip()], twice) or _holds(asked, twice):
        return
    telling = {line for line in twice if sum(char.isalnum() for char in line) >= 3}
    if not telling:
        return
    rows = [row for row, _ in filled[len(filled) - length :]]
    level: Level = "block" if len(telling) > 1 else "warn"
    yield Finding(
        DUPLICATED_TAIL,
        level,
        f"The end of the file is there twice, the second time from line {rows[0] + 1} on; try "
        "again, or remove the copy.",
        tuple(row + 1 for row in rows),
    )


def _ends_as_asked(given: GuardInput) -> bool:
    """The snippet's last line, no marker, is the result's last one."""
    asked = next((line for line in reversed(split_lines(given.snippet)) if line.strip()), "")
    last = next((line for line in reversed(given.final) if line.strip()), "")
    return given.hunks is None and bool(asked) and asked.strip() == last.strip()


def _begins_one(line: str, originals: Sequence[str]) -> bool:
    return any(original.startswith(line.rstrip()) for original in originals)


def _length(lines: Sequence[str]) -> int:
    """Characters that count: indentation and blank lines are no content."""
    return sum(len(line.strip()) for line in lines)


def _repeated_end(lines: Sequence[str]) -> int:
    """The greatest n such that the last n lines equal the n before them; 0 if there is none.

    By Gusfield's Z array of the reversed lines, in linear time.
    """
    reverse = lines[::-1]
    size = len(reverse)
    z = [0] * size
    left, right, best = 0, 0, 0
    for at in range(1, size):
        run = min(right - at, z[at - left]) if at < right else 0
        while at + run < size and reverse[run] == reverse[at + run]:
            run += 1
        z[at] = run
        if at + run > right:
            left, right = at, at + run
        if run >= at:
            best = at
    return best


def _ends_with(lines: Sequence[str], end: Sequence[str]) -> bool:
    return len(lines) >= len(end) and lines[len(lines) - len(end) :] == end


def _holds(lines: Sequence[str], part: Sequence[str]) -> bool:
    size = len(part)
    return any(lines[at : at + size] == part for at in range(len(lines) - size + 1))
