"""Published values of the speculation formulas (Leviathan et al. 2023)."""

from __future__ import annotations

import pytest

from apply_server.decode.speedup import expected_speedup, expected_tokens_per_pass


@pytest.mark.parametrize(
    ("alpha", "k", "tokens"),
    [(0.8, 4, 3.36), (0.6, 4, 2.31), (0.6, 8, 2.47), (0.95, 16, 11.6), (0.0, 5, 1.0), (1.0, 5, 6)],
)
def test_expected_tokens_per_pass(alpha: float, k: int, tokens: float) -> None:
    assert expected_tokens_per_pass(alpha, k) == pytest.approx(tokens, abs=0.05)


@pytest.mark.parametrize(("alpha", "k", "speedup"), [(0.8, 4, 2.8), (0.6, 4, 1.92), (0.6, 8, 1.76)])
def test_expected_speedup_with_a_draft_cost_of_a_twentieth(
    alpha: float, k: int, speedup: float
) -> None:
    assert expected_speedup(alpha, k, draft_cost=0.05) == pytest.approx(speedup, abs=0.01)


@pytest.mark.parametrize("alpha", [-0.1, 1.1])
def test_a_rate_outside_its_range_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="outside"):
        expected_tokens_per_pass(alpha, 3)
