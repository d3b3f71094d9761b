"""One merge's input in the form that matching, placing and writing share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apply_server.merge.lines import Lines, width
from apply_server.merge.structure import Scope, scopes
from apply_server.snippet import Edit, Segment


@dataclass(frozen=True, slots=True)
class Splice:
    """`segments`: (first row, end row) of the snippet; `markers`: the marker line below each.

    `leading` and `trailing`: a marker stands before the first and after the last segment.
    `whole`: the snippet gives its outer block in full.
    """

    snippet: Lines
    original: Lines
    segments: tuple[tuple[int, int], ...]
    markers: tuple[str | None, ...]
    leading: bool
    trailing: bool
    whole: bool
    scope: Scope

    def below_marker(self, first: int) -> bool:
        """Whether a marker stands above row `first` of a segment."""
        return first > 0 or self.leading

    def above_marker(self, end: int) -> bool:
        """Whether a marker stands below a segment that ends before row `end`."""
        return end < len(self.snippet) or self.trailing

    def bounds(self, row: int) -> tuple[int, int]:
        """The segment that holds `row`."""
        return next((first, end) for first, end in self.segments if first <= row < end)


def splice_of(original: Sequence[str], edit: Edit, language: str | None) -> Splice:
    """For the segments of a lazy or patch edit."""
    snippet = Lines([line for part in edit.segments for line in part.lines], language)
    lines = Lines(original, language)
    segments = _bounds(edit.segments)
    markers = tuple(part.marker for part in edit.segments)
    depths = [-1 if marker is None else width(marker) for marker in markers]
    return Splice(
        snippet,
        lines,
        segments,
        markers,
        edit.leading,
        edit.trailing,
        edit.dialect == "patch",
        scopes(snippet, lines, segments, depths),
    )


def _bounds(segments: Sequence[Segment]) -> tuple[tuple[int, int], ...]:
    bounds = []
    at = 0
    for segment in segments:
        bounds.append((at, at + len(segment.lines)))
        at += len(segment.lines)
    return tuple(bounds)
