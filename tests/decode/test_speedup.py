"""The cost table interpolates, extrapolates and survives JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_server.decode.speedup import CostTable


@given(st.integers(1, 5000), st.floats(0.5, 1000))
def test_synthetic_is_one_plus_k_minus_one_over_rho(k: int, rho: float) -> None:
    assert CostTable.synthetic(rho).cost(k) == pytest.approx(1 + (k - 1) / rho)


def test_measured_points_are_relative_to_one_token_and_linear_between() -> None:
    table = CostTable.measured({1: 0.2, 16: 0.3, 256: 2.1})
    assert table.cost(1) == 1.0
    assert table.cost(16) == pytest.approx(1.5)
    assert table.cost(136) == pytest.approx(6.0)
    assert table.cost(496) == pytest.approx(19.5)


def test_noise_never_makes_a_longer_pass_cheaper() -> None:
    table = CostTable.measured({1: 1.0, 8: 0.9, 16: 1.2, 32: 1.1})
    assert [table.cost(k) for k in (1, 8, 16, 32)] == [1.0, 1.0, 1.2, 1.2]


def test_json_round_trip() -> None:
    table = CostTable.measured({1: 0.2, 16: 0.3, 256: 2.1})
    assert CostTable.from_json(json.loads(json.dumps(table.to_json()))) == table


@pytest.mark.parametrize("points", [[], [[1, 1.0]], [[2, 1.0], [4, 2.0]], [[1, 1.0], [1, 2.0]]])
def test_broken_json_is_refused(points: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="not a cost table"):
        CostTable.from_json(points)


def test_rho_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        CostTable.synthetic(0)
