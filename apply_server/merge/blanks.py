"""Blank lines at a segment's edges: whose they are, the file's, the new lines' or nobody's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile

from apply_server.merge.lines import Lines, is_closer
from apply_server.merge.placement import Placed


def settle_blanks(segment: Placed, snippet: Lines, original: Lines) -> None:
    """Adjust which blank rows of a placed segment stand for which lines of the file."""
    _drop_separators(segment, snippet)
    if not segment.at_end:
        _absorb(segment, snippet, original)
        _drop_before_closer(segment, snippet, original)
    if not segment.matched:
        return
    if not segment.at_end:
        _leave_to_outer(segment, snippet, original)
        _keep_below(segment, snippet, original)
    if not segment.at_start:
        _keep_above(segment, snippet, original)


def _drop_separators(segment: Placed, snippet: Lines) -> None:
    """Blank lines that only set a marker off from a line of the file are not the file's."""
    rows = range(segment.first, segment.last)
    for edge, order in ((segment.at_start, rows), (segment.at_end, rows[::-1])):
        blanks = list(
            takewhile(lambda row: not snippet.text[row] and row not in segment.matched, order)
        )
        if not edge and len(blanks) < len(rows) and order[len(blanks)] in segment.matched:
            segment.dropped.update(blanks)


def _absorb(segment: Placed, snippet: Lines, original: Lines) -> None:
    """Blank lines at the segment's end are the ones that the file has there."""
    rows = range(segment.first, segment.last)
    count = _run(reversed(rows), lambda row: not snippet.text[row] and row not in segment.matched)
    absorbed = not snippet.text[rows[len(rows) - count - 1]] if count < len(rows) else False
    for row in rows[len(rows) - count :]:
        if segment.end < len(original) and not original.text[segment.end]:
            segment.matched[row] = segment.end
            segment.dropped.discard(row)
            segment.end += 1
            absorbed = True
        elif absorbed:
            segment.dropped.add(row)


def _drop_before_closer(segment: Placed, snippet: Lines, original: Lines) -> None:
    """Nothing is set off from the bracket that closes the block."""
    if segment.end >= len(original) or not is_closer(original.text[segment.end]):
        return
    rows = range(segment.first, segment.last)
    segment.dropped.update(
        takewhile(lambda row: not snippet.text[row] and row not in segment.matched, reversed(rows))
    )


def _leave_to_outer(segment: Placed, snippet: Lines, original: Lines) -> None:
    """Blank lines that set the file's next outer block off stay in front of it.

    New lines at a block's end take a blank line of their own from the snippet, not one of those.
    """

    def kept_blank(row: int) -> bool:
        return not snippet.text[row] and row in segment.matched

    rows = range(segment.first, segment.last)
    tail = _run(reversed(rows), kept_blank)
    split = len(rows) - tail
    split -= _run(reversed(rows[:split]), lambda row: row not in segment.matched)
    head = _run(reversed(rows[:split]), kept_blank)
    after, start = segment.end, segment.end - tail - head
    if not (tail and head) or split + tail == len(rows) or after >= len(original):
        return
    blanks = [*rows[split - head : split], *rows[len(rows) - tail :]]
    in_line = [segment.matched[row] for row in blanks] == list(range(start, after))
    if not in_line or not 0 <= original.depth[after] < snippet.depth[rows[split]]:
        return
    for row in blanks:
        del segment.matched[row]
    segment.matched.update(zip(blanks[head:], range(start, start + tail), strict=True))
    segment.end = start + tail


def _keep_below(segment: Placed, snippet: Lines, original: Lines) -> None:
    """New lines before a marker go above the file's blank line rather than onto the next code."""
    row, after = segment.last - 1, segment.end
    if row in segment.matched or not snippet.text[row] or after >= len(original):
        return
    if not original.text[after] or is_closer(original.text[after]):
        return
    while row >= segment.first and row not in segment.matched:
        row -= 1
    while row > segment.first and not snippet.text[row]:
        if segment.matched.get(row) != segment.end - 1:
            return
        del segment.matched[row]
        segment.end -= 1
        row -= 1


def _keep_above(segment: Placed, snippet: Lines, original: Lines) -> None:
    """New lines after a marker go below the file's blank line rather than onto the code above."""
    row, before = segment.first, segment.start - 1
    if row in segment.matched or not snippet.text[row] or before < 0:
        return
    if not original.text[before] or original.depth[before] < snippet.depth[row]:
        return
    while row < segment.last and row not in segment.matched:
        row += 1
    while row < segment.last - 1 and not snippet.text[row]:
        if segment.matched.get(row) != segment.start:
            return
        del segment.matched[row]
        segment.start += 1
        row += 1


def _run(rows: Iterable[int], holds: Callable[[int], bool]) -> int:
    return sum(1 for _ in takewhile(holds, rows))
