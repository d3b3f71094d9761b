"""The cost table of a model on this machine: measured once, kept in the cache.

Drafting weighs what a longer block costs against what it may bring, and that differs by an order of
magnitude between processors. Must not know who drafts.
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

from apply_server.decode.draft import Draft
from apply_server.decode.speedup import CostTable
from apply_server.decode.target import TargetModel
from apply_server.target.transformers_model import TransformersSlot, TransformersTarget

# Between these c(k) is close to straight on the processors it was looked at.
_BLOCKS = (1, 2, 8, 32, 128)
# Others use the machine too: each size is timed in several rounds, so that a busy moment hits one
# round of all sizes and not all rounds of one, and the fastest counts.
_ROUNDS = 3
_TOKEN = 5


def cost_table(target: TransformersTarget, model: Path, cache: Path) -> CostTable:
    """The table of `target`, loaded from `model`; measured (in seconds) where `cache` has none.

    A cache that can't be read or written only means measuring again.
    """
    file = cache / f"{_key(target, model)}.json"
    try:
        return CostTable.from_json(json.loads(file.read_text("utf-8"))["points"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    table = CostTable.measured(measure(target))
    try:
        cache.mkdir(parents=True, exist_ok=True)
        content = {"model": str(model), "points": table.to_json()}
        file.write_text(json.dumps(content), "utf-8")
    except OSError:
        pass
    return table


def measure(target: TargetModel[TransformersSlot]) -> dict[int, float]:
    """Seconds of a pass over k tokens, by k."""
    slot = target.open([_TOKEN, _TOKEN], max(_BLOCKS))
    try:
        for _ in target.prefill(slot):
            pass
        target.verify([(slot, Draft())])  # the first pass also pays for warming up
        rounds = [{k: _seconds(target, slot, k) for k in _BLOCKS} for _ in range(_ROUNDS)]
        return {k: min(seconds[k] for seconds in rounds) for k in _BLOCKS}
    finally:
        target.close(slot)


def _seconds(target: TargetModel[TransformersSlot], slot: TransformersSlot, k: int) -> float:
    started = time.perf_counter()
    target.verify([(slot, Draft.chain([_TOKEN] * (k - 1)))])
    return time.perf_counter() - started


def _key(target: TransformersTarget, model: Path) -> str:
    """One table for each model, device, number type and thread count (and library version)."""
    import torch

    parts = (
        str(model.resolve()),
        target.device,
        target.dtype,
        str(torch.get_num_threads()),
        torch.__version__,
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
