"""The seam between the loop and whatever can verify a draft.

This module must not know how a target computes: a transformers model, a scripted answer and a
remote machine look the same from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from apply_server.decode.draft import Draft

SlotT = TypeVar("SlotT")

Prefilled = Callable[[int, int], None]
"""Called after each prefill chunk with (tokens done, tokens in all). It may raise to cancel."""


def ignore_progress(done: int, total: int) -> None:
    """A `Prefilled` for callers that don't watch."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The target's own choice after the pending token and after each draft node.

    `choices[0]` follows the pending token; `choices[1 + i]` follows draft node `i`, given the path
    from the root to that node. Length: 1 + len(draft).
    """

    choices: tuple[int, ...]


class TargetModel(Protocol[SlotT]):
    """Verifies drafts for many sequences at once. Not thread-safe: one thread drives it."""

    @property
    def passes(self) -> int:
        """Forward passes made by `verify` so far; prefill is counted apart."""
        ...

    def open(
        self, prompt: Sequence[int], room: int, prefilled: Prefilled = ignore_progress
    ) -> SlotT:
        """Prefill all but the last token of `prompt` and leave that one pending.

        So the first step is a step like any other. `room` is the output's limit, in tokens. Raises
        DocumentTooLong where prompt and room don't fit; frees everything where `prefilled` raises.
        """
        ...

    def verify(self, batch: Sequence[tuple[SlotT, Draft]]) -> list[Verdict]:
        """Feed each slot's pending token and then its draft, in ONE forward pass for all."""
        ...

    def commit(self, slot: SlotT, path: Sequence[int], pending: int) -> None:
        """Keep the pending token and the draft nodes on `path`; `pending` is the next one."""
        ...

    def close(self, slot: SlotT) -> None:
        """Give the slot's memory back. Closing twice is harmless."""
        ...
