"""A target that makes every pass, and another that says what it chooses.

What decoding costs hangs on how long answers are and on how much of them drafts foresee, not on
which tokens are chosen. So the time of any answer can be measured, one that shares nothing with the
file for instance, on weights of no use otherwise. Must not know prompts or documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from apply_server.decode.draft import Draft
from apply_server.decode.sampling import GREEDY, Sampling
from apply_server.decode.target import TargetModel, Verdict

SlotT = TypeVar("SlotT")
GuideT = TypeVar("GuideT")


@dataclass(frozen=True, slots=True)
class DirectedSlot(Generic[SlotT, GuideT]):
    """The same sequence in both."""

    computed: SlotT
    guide: GuideT


@dataclass(frozen=True, slots=True)
class DirectedTarget(Generic[SlotT, GuideT]):
    """`target` computes all that it is asked to; `guide` says what it chose."""

    target: TargetModel[SlotT]
    guide: TargetModel[GuideT]

    @property
    def passes(self) -> int:
        """See TargetModel.passes."""
        return self.target.passes

    def open(
        self, prompt: Sequence[int], room: int, sampling: Sampling = GREEDY
    ) -> DirectedSlot[SlotT, GuideT]:
        """See TargetModel.open."""
        computed = self.target.open(prompt, room, sampling)
        return DirectedSlot(computed, self.guide.open(prompt, room, sampling))

    def cached(self, slot: DirectedSlot[SlotT, GuideT]) -> int:
        """See TargetModel.cached."""
        return self.target.cached(slot.computed)

    def prefill(self, slot: DirectedSlot[SlotT, GuideT]) -> Iterator[int]:
        """See TargetModel.prefill."""
        return self.target.prefill(slot.computed)

    def warm(self, prompt: Sequence[int]) -> Iterator[int]:
        """See TargetModel.warm."""
        return self.target.warm(prompt)

    def verify(self, batch: Sequence[tuple[DirectedSlot[SlotT, GuideT], Draft]]) -> list[Verdict]:
        """The one's pass, and the other's verdict."""
        self.target.verify([(slot.computed, draft) for slot, draft in batch])
        return self.guide.verify([(slot.guide, draft) for slot, draft in batch])

    def commit(self, slot: DirectedSlot[SlotT, GuideT], path: Sequence[int], pending: int) -> None:
        """See TargetModel.commit."""
        self.target.commit(slot.computed, path, pending)
        self.guide.commit(slot.guide, path, pending)

    def close(self, slot: DirectedSlot[SlotT, GuideT]) -> None:
        """See TargetModel.close."""
        self.target.close(slot.computed)
        self.guide.close(slot.guide)
