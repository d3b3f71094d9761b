"""How many of the processor's threads a model computes with: as few as cost next to nothing.

Editors and the event loop need some too, and a pass waits for the slowest of its threads, which is
one that shares its core or has a slow one. Must not know who asks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from apply_server.engine.cost import measure, measurements_of
from apply_server.errors import InvalidRequest, Remedy
from apply_server.target.transformers_model import TransformersTarget

# A pass without a draft, and one with a usual draft.
_BLOCKS = (1, 16)
_ROUNDS = 2
# How much more time fewer threads may take.
_PATIENCE = 1.15
_OWN_SETTING = "OMP_NUM_THREADS"


def check_threads(wanted: int) -> None:
    """Raises InvalidRequest for more threads than there are processors, or fewer than none."""
    most = _processors()
    if not 0 <= wanted <= most:
        raise InvalidRequest(
            f"A model can't compute with {wanted} threads here: there are processors for {most}.",
            remedy=Remedy("threads", ("0",), "chooses by measuring."),
        )


def settle_threads(wanted: int, target: TransformersTarget, model: Path, cache: Path) -> int:
    """Have `target`, loaded from the folder `model`, compute with `wanted` threads from now on.

    0: with as many as measure best, which is found out once and kept in `cache`; or as the
    environment says. Returns how many it is.
    """
    import torch

    if target.device == "cpu" and (wanted or _OWN_SETTING not in os.environ):
        measured = measurements_of(target, model, cache, _processors())
        torch.set_num_threads(
            wanted or measured.once("threads", _positive, lambda: fewest(_seconds(target)))
        )
    number: int = torch.get_num_threads()
    return number


def fewest(seconds: Mapping[int, float]) -> int:
    """The fewest threads that take little more time than the fastest number of them."""
    least = min(seconds.values())
    return min(threads for threads, taken in seconds.items() if taken <= _PATIENCE * least)


def candidates(processors: int) -> list[int]:
    """All, and half, as two may share a core; with one left free; and a third, as some are slow."""
    numbers = (processors, processors - 1, processors // 2, processors // 2 - 1, processors // 3)
    return sorted({max(1, number) for number in numbers}, reverse=True)


def _seconds(target: TransformersTarget) -> dict[int, float]:
    """What a pass of each kind takes together, by the number of threads."""
    import torch

    numbers = candidates(_processors())
    taken: dict[int, float] = dict.fromkeys(numbers, float("inf"))
    for _ in range(_ROUNDS):  # in turns, as others use the machine too
        for threads in numbers:
            torch.set_num_threads(threads)
            taken[threads] = min(taken[threads], sum(measure(target, _BLOCKS, rounds=1).values()))
    return taken


def _processors() -> int:
    """Those that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _positive(found: int) -> int:
    if found < 1:
        raise ValueError(f"{found} threads")
    return found
