"""The arithmetic of speculation: acceptance rate and costs → tokens per pass and speed-up.

Pure functions of numbers; must not know models or proposers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


def expected_tokens_per_pass(alpha: float, k: int) -> float:
    """E[tokens emitted by one pass] for `k` drafted tokens, each accepted with rate `alpha`.

    (1 - alpha^(k+1)) / (1 - alpha): Leviathan et al. 2023, equation 1, tokens accepted in a row
    plus the target's own. `alpha` in [0, 1].
    """
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"acceptance rate {alpha} is outside [0, 1]")
    return float(k + 1) if alpha == 1.0 else (1.0 - alpha ** (k + 1)) / (1.0 - alpha)


def expected_speedup(alpha: float, k: int, draft_cost: float) -> float:
    """Wall-clock speed-up over plain decoding (Leviathan et al. 2023, theorem 3.8).

    `draft_cost` is the time of drafting one token relative to one target pass; verifying k + 1
    tokens is taken to cost one pass.
    """
    return expected_tokens_per_pass(alpha, k) / (k * draft_cost + 1.0)


@dataclass(frozen=True, slots=True)
class CostTable:
    """c(k): the time of one target pass over `k` tokens, relative to a pass over one.

    `points` are (k, c) with growing k, the first (1, 1.0); between points c is linear, and beyond
    the last the last slope goes on.
    """

    points: tuple[tuple[int, float], ...]

    @staticmethod
    def synthetic(rho: float) -> CostTable:
        """1 + (k - 1) / rho, for replay without a machine; rho is prefill over decode speed."""
        if not rho > 0:
            raise ValueError(f"rho must be positive, not {rho}")
        return CostTable(((1, 1.0), (2, 1.0 + 1.0 / rho)))

    @staticmethod
    def parse(spec: str) -> CostTable:
        """The table that "rho=15" names. Raises ValueError on anything else."""
        name, _, value = spec.partition("=")
        if name != "rho":
            raise ValueError(f"{spec!r} is no cost: write rho=15, or another number")
        return CostTable.synthetic(float(value))

    @staticmethod
    def measured(seconds: Mapping[int, float]) -> CostTable:
        """From measured seconds per pass at some k, 1 among them. Timing noise never makes a
        longer pass cheaper than a shorter one.
        """
        one = seconds[1]
        points: list[tuple[int, float]] = []
        for k in sorted(seconds):
            floor = points[-1][1] if points else 1.0
            points.append((k, max(seconds[k] / one, floor)))
        return CostTable(tuple(points))

    @staticmethod
    def from_json(points: Sequence[Sequence[float]]) -> CostTable:
        """The inverse of `to_json`. Raises ValueError on anything else."""
        table = CostTable(tuple((int(k), float(c)) for k, c in points))
        ks = [k for k, _ in table.points]
        if len(ks) < 2 or ks[0] != 1 or sorted(set(ks)) != ks:
            raise ValueError(f"not a cost table: {points!r}")
        return table

    def to_json(self) -> list[list[float]]:
        """[[k, c], ...]."""
        return [[k, c] for k, c in self.points]

    def cost(self, k: int) -> float:
        """c(k), for k ≥ 1."""
        right = bisect_right(self.points, k, key=lambda point: point[0])
        right = min(max(right, 1), len(self.points) - 1)
        (k0, c0), (k1, c1) = self.points[right - 1], self.points[right]
        return c0 + (k - k0) * (c1 - c0) / (k1 - k0)
