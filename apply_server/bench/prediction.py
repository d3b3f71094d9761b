"""What the formulas of decode/speedup.py say of the passes that were made, to hold them against.

Must not know modes or clocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apply_server.bench.runs import Pass, Run
from apply_server.decode.speedup import CostTable, expected_tokens_per_pass


@dataclass(frozen=True, slots=True)
class Prediction:
    """None where nothing was drafted, or no cost is known.

    `acceptance_rate` is the chance that a drafted token is taken once those before it are, and
    `predicted_tokens_per_pass` what drafts of the mean length would then bring if tokens were
    independent of each other (side branches count as length). `modelled_speedup` is the output
    tokens over the cost of the passes, in passes over one token: what decoding would gain if the
    cost table were the truth and drafting took no time.
    """

    acceptance_rate: float | None = None
    predicted_tokens_per_pass: float | None = None
    modelled_speedup: float | None = None


def predict(runs: Iterable[Run], cost: CostTable | None) -> Prediction:
    """Over all passes of `runs`; `cost` is the table of the model that made them."""
    made = list(runs)
    passes = [each for run in made for each in run.passes]
    speedup = _modelled_speedup(passes, cost) if cost and passes else None
    if not any(each.drafted for each in passes):
        return Prediction(modelled_speedup=speedup)
    accepted = sum(each.emitted - 1 for each in passes)
    # The last pass of a run is cut by the output's end, which rejects nothing.
    rejections = sum(each.emitted <= each.drafted for run in made for each in run.passes[:-1])
    alpha = accepted / (accepted + rejections) if accepted else 0.0
    length = round(sum(each.drafted for each in passes) / len(passes))
    return Prediction(alpha, expected_tokens_per_pass(alpha, length), speedup)


def _modelled_speedup(passes: list[Pass], cost: CostTable) -> float:
    return sum(each.emitted for each in passes) / sum(cost.cost(1 + p.drafted) for p in passes)
