"""Where each segment lands: its span of the original and which lines of it are kept.

Takes the chain of matches and settles what the chain leaves open: segments that match nothing,
blank lines at a marker, the rest of a block that was given whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from apply_server.errors import AnchorNotFound
from apply_server.merge.chain import Chain, Problem
from apply_server.merge.lines import Lines, is_closer, width
from apply_server.merge.similarity import closest
from apply_server.merge.structure import Scope


@dataclass(slots=True)
class Placed:
    """Rows `first` to `last` replace lines `start` to `end`; `matched`: row → original line.

    `at_start` and `at_end`: it reaches the file's edge. `marker_depth` is the indentation of the marker below.
    `dropped`: blank rows that aren't written.
    `doubt` says why the place is not certain, empty when it is.
    """

    first: int
    last: int
    start: int
    end: int
    matched: dict[int, int]
    dropped: set[int] = field(default_factory=set)
    at_start: bool = False
    at_end: bool = False
    marker_depth: int = 0
    doubt: str = ""


def place(
    problem: Problem,
    chain: Chain,
    snippet: Lines,
    original: Lines,
    scope: Scope,
    markers: Sequence[str | None],
    whole: bool,
) -> list[Placed]:
    """The segments in order. `markers`: the marker below each, if any. `whole`: the snippet gives its outer block in full.

    Raises AnchorNotFound for a segment that nothing in the file ties down.
    """
    matched = {problem.matches[at].row: problem.matches[at].column for at in chain.path}
    placed: list[Placed] = []
    for number, (first, last) in enumerate(problem.segments):
        own = {row: matched[row] for row in range(first, last) if row in matched}
        if not any(_ties(snippet, scope, row) for row in own):
            own = {}
        at_start = number == 0 and chain.from_start
        at_end = number == len(problem.segments) - 1 and chain.to_end
        before = placed[-1].end if placed else 0
        if at_start or at_end or own:
            start = 0 if at_start else min(own.values()) if own else len(original)
            end = len(original) if at_end else max(own.values()) + 1 if own else 0
            segment = Placed(first, last, start, end, own, at_start=at_start, at_end=at_end)
            segment.marker_depth = width(markers[number] or "")
            _settle(segment, snippet, original, scope, whole, at_start, at_end)
        else:
            at = _home(snippet, original, scope, matched, first, before)
            segment = Placed(first, last, at, at, {})
        placed.append(segment)
    return placed


def _ties(snippet: Lines, scope: Scope, row: int) -> bool:
    return not snippet.common(row) or scope.closes[row] >= 0


def _settle(
    segment: Placed,
    snippet: Lines,
    original: Lines,
    scope: Scope,
    whole: bool,
    at_start: bool,
    at_end: bool,
) -> None:
    _drop_separators(segment, snippet, at_start, at_end)
    if not at_end and segment.matched:
        _close_block(segment, snippet, original, scope, whole)
        _absorb_blanks(segment, snippet, original)
        _leave_blanks_to_outer(segment, snippet, original)
        _keep_blank_below(segment, snippet, original)
    if not at_start and segment.matched:
        _keep_blank_above(segment, snippet, original)


def _close_block(
    segment: Placed, snippet: Lines, original: Lines, scope: Scope, whole: bool
) -> None:
    """A block whose new end is given loses the lines of its old end."""
    filled = [row for row in range(segment.first, segment.last) if snippet.text[row]]
    tail = filled[-1]
    header = tail
    while header >= 0 and (header not in segment.matched or header == tail):
        header = scope.header[header]
    if header < segment.first and whole:
        header = next((row for row in filled if scope.resolved[row] >= 0), -1)
    if header < segment.first:
        return
    given = not snippet.text[segment.last - 1] and segment.marker_depth <= snippet.depth[header]
    if not whole and (not given or tail in segment.matched):
        return
    end = original.block_end(segment.matched.get(header, -1)) if header in segment.matched else 0
    if end <= segment.end:
        return
    named = {symbol for symbol in snippet.symbols if symbol is not None}
    lost = [original.symbols[at] for at in range(segment.end, end)]
    if any(s is not None and s.kind == "definition" and s not in named for s in lost):
        segment.doubt = "The snippet may or may not mean to drop what follows in the same block."
        return
    segment.end = end


def _drop_separators(segment: Placed, snippet: Lines, at_start: bool, at_end: bool) -> None:
    """Blank lines that only set a marker off from a line of the file are not the file's."""
    rows = range(segment.first, segment.last)
    for edge, order in ((at_start, rows), (at_end, rows[::-1])):
        blanks = []
        for row in order:
            if snippet.text[row] or row in segment.matched:
                break
            blanks.append(row)
        if not edge and len(blanks) < len(rows) and order[len(blanks)] in segment.matched:
            segment.dropped.update(blanks)


def _absorb_blanks(segment: Placed, snippet: Lines, original: Lines) -> None:
    """Blank lines at the segment's end are the ones that the file has there."""
    blanks = segment.last
    while (
        blanks > segment.first
        and not snippet.text[blanks - 1]
        and blanks - 1 not in segment.matched
    ):
        blanks -= 1
    for row in range(blanks, segment.last):
        if segment.end < len(original) and not original.text[segment.end]:
            segment.matched[row] = segment.end
            segment.dropped.discard(row)
            segment.end += 1


def _leave_blanks_to_outer(segment: Placed, snippet: Lines, original: Lines) -> None:
    """Blank lines that set the file's next outer block off stay in front of it.

    New lines at a block's end take a blank line of their own from the snippet, not one of those.
    """
    rows = list(range(segment.first, segment.last))
    tail = _run(reversed(rows), lambda row: not snippet.text[row] and row in segment.matched)
    new = _run(reversed(rows[: len(rows) - tail]), lambda row: row not in segment.matched)
    split = len(rows) - tail - new
    head = _run(
        reversed(rows[:split]), lambda row: not snippet.text[row] and row in segment.matched
    )
    after = segment.end
    if not (tail and new and head) or after >= len(original):
        return
    if not 0 <= original.depth[after] < snippet.depth[rows[split]]:
        return
    start = segment.end - tail - head
    blanks = rows[split - head : split] + rows[len(rows) - tail :]
    if [segment.matched[row] for row in blanks] != list(range(start, segment.end)):
        return
    for row in blanks:
        del segment.matched[row]
    for at, row in enumerate(rows[len(rows) - tail :]):
        segment.matched[row] = start + at
    segment.end = start + tail


def _run(rows: Iterable[int], holds: Callable[[int], bool]) -> int:
    return sum(1 for _ in takewhile(holds, rows))


def _keep_blank_below(segment: Placed, snippet: Lines, original: Lines) -> None:
    """New lines before a marker go above the file's blank line rather than onto the next code."""
    row = segment.last - 1
    if row in segment.matched or not snippet.text[row]:
        return
    while row >= segment.first and row not in segment.matched:
        row -= 1
    after = segment.end
    if after >= len(original) or not original.text[after] or is_closer(original.text[after]):
        return
    while row > segment.first and row in segment.matched and not snippet.text[row]:
        if segment.matched[row] != segment.end - 1:
            return
        del segment.matched[row]
        segment.end -= 1
        row -= 1


def _keep_blank_above(segment: Placed, snippet: Lines, original: Lines) -> None:
    row = segment.first
    if row in segment.matched or not snippet.text[row]:
        return
    while row < segment.last and row not in segment.matched:
        row += 1
    before = segment.start - 1
    if (
        before < 0
        or not original.text[before]
        or original.depth[before] < snippet.depth[segment.first]
    ):
        return
    while row < segment.last - 1 and row in segment.matched and not snippet.text[row]:
        if segment.matched[row] != segment.start:
            return
        del segment.matched[row]
        segment.start += 1
        row += 1


def _home(
    snippet: Lines,
    original: Lines,
    scope: Scope,
    matched: dict[int, int],
    first: int,
    before: int,
) -> int:
    """Where lines without any anchor go: the end of the block that they belong to."""
    row = first
    while not snippet.text[row]:
        row += 1
    sibling = row - 1
    while sibling >= 0 and (
        snippet.depth[sibling] < 0 or snippet.depth[sibling] > snippet.depth[row]
    ):
        sibling -= 1
    if sibling >= 0 and sibling in matched and snippet.depth[sibling] == snippet.depth[row]:
        end = original.block_end(matched[sibling])
        if end > matched[sibling] + 1 and end >= before:
            return end
    header = scope.header[row]
    if header >= 0 and header in matched:
        end = original.block_end(matched[header])
        if end > matched[header] and is_closer(original.text[end - 1]):
            end -= 1
        while end > matched[header] + 1 and not original.text[end - 1]:
            end -= 1
        if end >= before:
            return end
    near = closest(snippet.norm[row], original.norm)
    lines = [at + 1 for at in near]
    raise AnchorNotFound(
        f"Nothing in the file matches this part of the snippet: {snippet.text[row][:80]!r}. "
        + (f"The closest lines are {', '.join(map(str, lines))}." if lines else ""),
        {"lines": lines, "snippet": snippet.text[row]},
    )
