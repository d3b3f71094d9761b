"""Runs made up by hand, and a tiny model as both ours and the peers'."""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.bench.modes import Family, Lookup, Mode
from apply_server.bench.runs import Measured, Pass, Run

PLAIN = Mode("plain", Family.OURS)
OURS = Mode("ours", Family.OURS)
HF_PLAIN = Mode("hf-plain", Family.HF)


def tuned(k: int, n: int) -> Mode:
    return Mode(f"hf-lookup:k={k},n={n}", Family.HF, Lookup(k, n))


def run(
    output: Sequence[int],
    passes: Sequence[tuple[int, int]] = (),
    decode_s: float = 1.0,
    prefill_s: float = 1.0,
    prompt_tokens: int = 100,
) -> Run:
    """A run of `passes` (drafted, emitted); one token a pass where none are given."""
    made = tuple(Pass(*each) for each in passes or [(0, 1)] * len(output))
    return Run(tuple(output), made, prompt_tokens, prefill_s, decode_s, True)


def measured(mode: Mode, made: Run, case: str = "a") -> Measured:
    return Measured(case, mode, made)


class Until:
    """A stop rule that ends the output with the `count`-th token."""

    def __init__(self, count: int) -> None:
        self.left = count

    def ends(self, token: int) -> bool:
        assert self.left > 0, "nothing is asked after the end"
        self.left -= 1
        return self.left == 0
