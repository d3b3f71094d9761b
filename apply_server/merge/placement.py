"""Where each segment lands: its span of the original and which lines of it are kept.

Takes the chain of matches and settles what the chain leaves open: segments that match nothing and
the rest of a block that was given whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apply_server.errors import AnchorNotFound
from apply_server.merge.chain import Chain, Problem
from apply_server.merge.lines import is_closer, width
from apply_server.merge.similarity import closest
from apply_server.merge.splice import Splice


@dataclass(slots=True)
class Placed:
    """Rows `first` to `last` replace lines `start` to `end`; `matched`: row → original line.

    `dropped`: blank rows that aren't written. `at_start` and `at_end`: it reaches the file's edge.
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
    doubt: str = ""


def place(splice: Splice, problem: Problem, chain: Chain) -> list[Placed]:
    """The segments in order.

    Raises AnchorNotFound for a segment that nothing in the file ties down.
    """
    matched = {problem.matches[at].row: problem.matches[at].column for at in chain.path}
    placed: list[Placed] = []
    for number in range(len(splice.segments)):
        before = placed[-1].end if placed else 0
        placed.append(_place_one(splice, chain, number, matched, before))
    return placed


def _place_one(
    splice: Splice, chain: Chain, number: int, matched: Mapping[int, int], before: int
) -> Placed:
    first, last = splice.segments[number]
    own = {row: matched[row] for row in range(first, last) if row in matched}
    if not any(_ties(splice, row) for row in own):
        own = {}
    at_start = number == 0 and chain.from_start
    at_end = number == len(splice.segments) - 1 and chain.to_end
    size = len(splice.original)
    if not (at_start or at_end or own):
        at = _home(splice, matched, first, before)
        return Placed(first, last, at, at, {})
    start = 0 if at_start else min(own.values(), default=size)
    end = size if at_end else max(own.values(), default=-1) + 1
    segment = Placed(first, last, start, end, own, at_start=at_start, at_end=at_end)
    if own and not at_end:
        _close_block(segment, splice, number)
    return segment


def _ties(splice: Splice, row: int) -> bool:
    return not splice.snippet.common(row) or splice.scope.closes[row] >= 0


def _close_block(segment: Placed, splice: Splice, number: int) -> None:
    """A block whose new end is given loses the lines of its old end."""
    header = _given_block(segment, splice, number)
    if header < 0:
        return
    original = splice.original
    end = original.block_end(segment.matched[header])
    if end <= segment.end:
        return
    named = {symbol for symbol in splice.snippet.symbols if symbol is not None}
    lost = [original.symbols[at] for at in range(segment.end, end)]
    if any(s is not None and s.kind == "definition" and s not in named for s in lost):
        segment.doubt = "The snippet may or may not mean to drop what follows in the same block."
        return
    segment.end = end


def _given_block(segment: Placed, splice: Splice, number: int) -> int:
    """The matched row that opens a block which the segment gives up to its end, -1 if none."""
    snippet, scope = splice.snippet, splice.scope
    filled = [row for row in range(segment.first, segment.last) if snippet.text[row]]
    tail = filled[-1]
    header = scope.header[tail]
    while header >= segment.first and header not in segment.matched:
        header = scope.header[header]
    if splice.whole:
        outer = next((row for row in filled if scope.resolved[row] >= 0), -1)
        header = header if header >= segment.first else outer
        return header if header in segment.matched else -1
    if header < segment.first or tail in segment.matched:
        return -1
    outside = width(splice.markers[number] or "") <= snippet.depth[header]
    return header if outside and not snippet.text[segment.last - 1] else -1


def _home(splice: Splice, matched: Mapping[int, int], first: int, before: int) -> int:
    """Where lines without any anchor go: the end of the block that they belong to."""
    snippet = splice.snippet
    row = next(at for at in range(first, len(snippet)) if snippet.text[at])
    for end in (_after_sibling(splice, matched, row), _end_of_parent(splice, matched, row)):
        if end >= max(before, 1):
            return end
    lines = [at + 1 for at in closest(snippet.norm[row], splice.original.norm)]
    near = f" The closest lines are {', '.join(map(str, lines))}." if lines else ""
    raise AnchorNotFound(
        f"Nothing in the file matches this part of the snippet: {snippet.text[row][:80]!r}.{near}",
        {"lines": lines, "snippet": snippet.text[row]},
    )


def _after_sibling(splice: Splice, matched: Mapping[int, int], row: int) -> int:
    """The end of the block above that stands as deep as `row`, when a marker hides its body."""
    depth = splice.snippet.depth
    above = row - 1
    while above >= 0 and (depth[above] < 0 or depth[above] > depth[row]):
        above -= 1
    if above < 0 or above not in matched or depth[above] != depth[row]:
        return -1
    end = splice.original.block_end(matched[above])
    return end if end > matched[above] + 1 else -1


def _end_of_parent(splice: Splice, matched: Mapping[int, int], row: int) -> int:
    """The last place in the block of the header above `row`."""
    header, original = splice.scope.header[row], splice.original
    if header < 0 or header not in matched:
        return -1
    at = matched[header]
    end = original.block_end(at)
    if end > at + 1 and is_closer(original.text[end - 1]):
        end -= 1
    while end > at + 1 and not original.text[end - 1]:
        end -= 1
    return end
