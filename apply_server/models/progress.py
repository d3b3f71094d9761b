"""How far a fetch or a conversion is, for whoever shows it.

This module must not know who listens: a terminal's progress bar, an editor, or nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Stage = Literal["fetch", "verify", "convert"]


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` bytes of one stage; `total` is None while it isn't known."""

    stage: Stage
    done: int
    total: int | None


def ignore(_: object) -> None:
    """Listen to nothing."""


@dataclass(frozen=True, slots=True)
class Report:
    """Where progress (often) and notices (sentences a person should see) go."""

    progress: Callable[[Progress], None] = ignore
    notice: Callable[[str], None] = ignore


def gigabytes(count: int) -> str:
    """`count` bytes as a person reads sizes: "1.12 GB", "93 MB"."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{max(1, round(count / 1e6))} MB"
