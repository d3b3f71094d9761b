"""Splices an edit into a document without a model: the deterministic merge."""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.merge.blocks import merge_blocks
from apply_server.merge.model import Anchor, Hunk, Merge
from apply_server.merge.segments import merge_segments
from apply_server.merge.whole import merge_whole
from apply_server.snippet import Edit

__all__ = ["Anchor", "Hunk", "Merge", "merge"]


def merge(original_lines: Sequence[str], edit: Edit, language: str | None) -> Merge:
    """Predict the file that `edit` asks for; lines carry no endings.

    Raises AmbiguousTarget when several places fit equally well and AnchorNotFound when none does,
    both with `details["lines"]` from 1.
    """
    if edit.dialect == "full":
        return merge_whole(original_lines, edit.segments[0].lines)
    if edit.blocks:
        return merge_blocks(original_lines, edit, language)
    return merge_segments(original_lines, edit, language)
