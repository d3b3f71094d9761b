"""The cost table of a model on this machine: measured once, kept in the cache.

Drafting weighs what a longer block costs against what it may bring, and that differs by an order of
magnitude between processors. Must not know who drafts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from apply_server import __version__
from apply_server.decode.draft import Draft
from apply_server.decode.speedup import CostTable
from apply_server.decode.target import TargetModel
from apply_server.engine.measured import Calibration
from apply_server.target.transformers_model import TransformersSlot, TransformersTarget

# Between these c(k) is close to straight on the processors it was looked at.
_BLOCKS = (1, 2, 8, 32, 128)
# Others use the machine too: each size is timed in several rounds, so that a busy moment hits one
# round of all sizes and not all rounds of one, and the fastest counts.
_ROUNDS = 3
_TOKEN = 5


def measurements_of(
    target: TransformersTarget, model: Path, cache: Path, threads: int
) -> Calibration:
    """What is measured once of `target`, loaded from the folder `model`, on so many threads.

    Again with another version of this program, whose passes may take another time or round
    otherwise.
    """
    import torch

    circumstances = (target.device, target.dtype, str(threads), torch.__version__, __version__)
    return Calibration(model, circumstances, cache)


def cost_table(target: TransformersTarget, measured: Calibration) -> CostTable:
    """The table of a target on this machine; measuring it takes seconds."""
    return measured.once("points", CostTable.from_json, lambda: _table(target))


def measure(
    target: TargetModel[TransformersSlot], blocks: Sequence[int] = _BLOCKS, rounds: int = _ROUNDS
) -> dict[int, float]:
    """Seconds of a pass over k tokens, by k."""
    slot = target.open([_TOKEN, _TOKEN], max(blocks))
    try:
        for _ in target.prefill(slot):
            pass
        target.verify([(slot, Draft())])  # the first pass also pays for warming up
        taken = [{k: _seconds(target, slot, k) for k in blocks} for _ in range(rounds)]
        return {k: min(seconds[k] for seconds in taken) for k in blocks}
    finally:
        target.close(slot)


def _table(target: TransformersTarget) -> list[list[float]]:
    return CostTable.measured(measure(target)).to_json()


def _seconds(target: TargetModel[TransformersSlot], slot: TransformersSlot, k: int) -> float:
    started = time.perf_counter()
    target.verify([(slot, Draft.chain([_TOKEN] * (k - 1)))])
    return time.perf_counter() - started
