"""The seam between the loop and whatever can verify a draft.

This module must not know how a target computes: a transformers model, a scripted answer and a
remote machine look the same from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from apply_server.decode.draft import ROOT, Draft, Features
from apply_server.decode.sampling import GREEDY, Sampling

SlotT = TypeVar("SlotT")

UNDECIDED = -(1 << 31)
"""Stands for a choice too close to call in this pass's shape."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The target's own choice after the pending token and after each draft node.

    `choices[0]` follows the pending token; `choices[1 + i]` follows draft node `i`, given the path
    from the root to that node. Length: 1 + len(draft). Where a child was drawn from a distribution
    of its own (`Draft.q`), choosing it means that the draw was accepted. `features` holds what each
    choice was made from, where the target can tell; of nodes that weren't computed it holds none.

    A choice may be UNDECIDED, but for the first: then that node's token is the last that this pass
    says anything about. `arbitrated`: the first choice is one that an earlier pass left undecided,
    or (`repeated`) this one, which then took another pass over the pending token alone.
    """

    choices: tuple[int, ...]
    arbitrated: bool = False
    repeated: bool = False
    features: Sequence[Features] | None = field(default=None, compare=False, repr=False)

    def features_along(self, path: Sequence[int]) -> tuple[Features, ...]:
        """What the choices on the accepted `path`, the one after it included, were made from."""
        if self.features is None:
            return ()
        return tuple(self.features[1 + node] for node in (ROOT, *path))


class TargetModel(Protocol[SlotT]):
    """Verifies drafts for many sequences at once. Not thread-safe: one thread drives it."""

    @property
    def passes(self) -> int:
        """Forward passes made by `verify` so far; prefill is counted apart."""
        ...

    def open(self, prompt: Sequence[int], room: int, sampling: Sampling = GREEDY) -> SlotT:
        """Reserve memory for `prompt` and an output of at most `room` tokens, chosen by `sampling`.

        Nothing is computed yet. Raises DocumentTooLong where the two don't fit.
        """
        ...

    def cached(self, slot: SlotT) -> int:
        """How many of the prompt's tokens an earlier request has computed, before prefill."""
        ...

    def prefill(self, slot: SlotT) -> Iterator[int]:
        """Compute all but the prompt's last token and leave that one pending.

        So the first step is a step like any other. Yields, after each chunk, how many tokens are
        done; whoever stops listening stops the work.
        """
        ...

    def verify(self, batch: Sequence[tuple[SlotT, Draft]]) -> list[Verdict]:
        """Feed each slot's pending token and then its draft, in ONE forward pass for all."""
        ...

    def commit(self, slot: SlotT, path: Sequence[int], pending: int) -> None:
        """Keep the pending token and the draft nodes on `path`; `pending` is the next one."""
        ...

    def warm(self, prompt: Sequence[int]) -> Iterator[int]:
        """Compute ahead what prompts that begin like this one will need.

        Yields how many of its tokens are known: those that were, then as `prefill` does. Whoever
        stops listening stops the work; what was done until then is kept.
        """
        ...

    def close(self, slot: SlotT) -> None:
        """Give the slot's memory back. Closing twice is harmless."""
        ...
