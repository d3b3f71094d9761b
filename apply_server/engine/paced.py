"""A target that takes its time, so that what happens meanwhile can be tried out.

Must not know what the target computes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from apply_server.decode.draft import Draft
from apply_server.decode.sampling import GREEDY, Sampling
from apply_server.decode.target import TargetModel, Verdict

SlotT = TypeVar("SlotT")


@dataclass(frozen=True, slots=True)
class PacedTarget(Generic[SlotT]):
    """`target`, each of whose passes takes `delay_s` seconds longer."""

    target: TargetModel[SlotT]
    delay_s: float

    @property
    def passes(self) -> int:
        """See TargetModel.passes."""
        return self.target.passes

    def open(self, prompt: Sequence[int], room: int, sampling: Sampling = GREEDY) -> SlotT:
        """See TargetModel.open."""
        return self.target.open(prompt, room, sampling)

    def cached(self, slot: SlotT) -> int:
        """See TargetModel.cached."""
        return self.target.cached(slot)

    def prefill(self, slot: SlotT) -> Iterator[int]:
        """See TargetModel.prefill."""
        return self.target.prefill(slot)

    def warm(self, prompt: Sequence[int]) -> Iterator[int]:
        """See TargetModel.warm."""
        return self.target.warm(prompt)

    def verify(self, batch: Sequence[tuple[SlotT, Draft]]) -> list[Verdict]:
        """See TargetModel.verify."""
        time.sleep(self.delay_s)
        return self.target.verify(batch)

    def commit(self, slot: SlotT, path: Sequence[int], pending: int) -> None:
        """See TargetModel.commit."""
        self.target.commit(slot, path, pending)

    def close(self, slot: SlotT) -> None:
        """See TargetModel.close."""
        self.target.close(slot)
