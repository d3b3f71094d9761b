"""A whole-file edit: the snippet is the result; what differs are the hunks."""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.line_diff import line_edits
from apply_server.merge.model import Hunk, Merge

_SMALL = 4
_MOST_GONE = 0.5


def merge_whole(original: Sequence[str], lines: Sequence[str]) -> Merge:
    """Hunks between `original` and `lines`. Doubtful when most of a longer file would go."""
    edits = line_edits(original, lines)
    hunks = tuple(Hunk(edit.start, edit.end, edit.lines, "edge", 1.0) for edit in edits)
    gone = sum(hunk.end - hunk.start - len(hunk.lines) for hunk in hunks)
    kept = len(original) - sum(hunk.end - hunk.start for hunk in hunks)
    doubtful = len(original) > _SMALL and (
        gone > _MOST_GONE * len(original) or kept < 0.2 * len(original)
    )
    return Merge(
        tuple(lines),
        hunks,
        0.4 if doubtful else 1.0,
        not doubtful,
        ("The snippet leaves out most of the file.",) if doubtful else (),
    )
