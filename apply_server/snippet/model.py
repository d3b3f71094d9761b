"""The values an edit is parsed into. Must not know how an edit is found in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dialect = Literal["lazy", "patch", "full", "search_replace", "unified_diff", "v4a"]


@dataclass(frozen=True, slots=True)
class Segment:
    """Lines that stand next to each other in the result; markers stand between segments.

    `marker` is the marker line below, None at the end of the snippet.
    """

    lines: tuple[str, ...]
    marker: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """`before` is to become `after`.

    `hint` is the 0-based line where `before` is said to start, None when the dialect doesn't say.
    `context` are lines that stand somewhere above it, outermost first. `at_end`: it must end the
    file.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    hint: int | None = None
    context: tuple[str, ...] = ()
    at_end: bool = False


@dataclass(frozen=True, slots=True)
class Edit:
    """What a person or a model handed over, in the structure its dialect gives it.

    `segments` holds the text of the lazy, patch and full dialects; `leading` and `trailing` say
    whether a marker stands before the first and after the last. `blocks` holds the others'.
    """

    dialect: Dialect
    segments: tuple[Segment, ...] = ()
    leading: bool = False
    trailing: bool = False
    blocks: tuple[Block, ...] = ()
