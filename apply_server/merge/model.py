"""What a merge yields. Must not know which dialect the edit came in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Anchor = Literal["exact", "indent", "fuzzy", "symbol", "edge"]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines `start` to `end` (from 0, exclusive) of the original become `lines`.

    `anchor` is the weakest way in which the lines around it were found; `confidence` is 0 to 1.
    """

    start: int
    end: int
    lines: tuple[str, ...]
    anchor: Anchor
    confidence: float


@dataclass(frozen=True, slots=True)
class Merge:
    """The predicted file. `unambiguous`: safe to take without asking a model."""

    lines: tuple[str, ...]
    hunks: tuple[Hunk, ...]
    confidence: float
    unambiguous: bool
    warnings: tuple[str, ...] = ()
