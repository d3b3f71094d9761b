"""The arithmetic of speculation: acceptance rate and costs → tokens per pass and speed-up.

Pure functions of numbers; must not know models or proposers.
"""

from __future__ import annotations


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
