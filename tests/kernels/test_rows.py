"""Norms and gates against float64's, and a row alone against a row among others."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from apply_server.kernels.functions import exponential
from apply_server.kernels.rows import gate, norm
from tests.kernels.numbers import noise

# More than a unit of work has, and one row.
ROWS, WIDTHS = 21, [1, 7, 16, 64, 1536]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("outlier", [1.0, 1e4])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-5])
def test_a_norm_is_float64s(width: int, outlier: float, epsilon: float) -> None:
    rows, weight = noise(ROWS, width), noise(width, seed=1)
    rows[:, 0] *= outlier
    rows[3] = 0.0
    rows[4] *= 1e-3  # where the epsilon counts
    expected = torch.nn.functional.rms_norm(rows.double(), (width,), weight.double(), epsilon)
    found = norm(rows, weight, epsilon)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_gate_is_float64s(width: int) -> None:
    rows = noise(ROWS, 2 * width) * 5
    rows[3], rows[4, :width], rows[5, :width] = 0.0, 1e4, -1e4
    expected = torch.nn.functional.silu(rows[:, :width].double()) * rows[:, width:]
    torch.testing.assert_close(gate(rows).double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_is_the_same_bits_in_every_block(width: int) -> None:
    rows, weight = noise(ROWS, 2 * width), noise(width, seed=1)
    normed, gated = norm(rows[:, :width].contiguous(), weight, 1e-6), gate(rows)
    for first in range(ROWS):
        for count in {1, 2, 8, ROWS - first}:
            some = rows[first : first + count]
            own = some[:, :width].contiguous()
            assert torch.equal(norm(own, weight, 1e-6), normed[first : first + count])
            assert torch.equal(gate(some), gated[first : first + count])


def test_the_exponential_is_float64s_within_two_units_in_the_last_place() -> None:
    numbers = np.linspace(-86.9, 87.9, 20_001, dtype=np.float32)
    found = np.array([exponential(each) for each in numbers])
    expected = np.exp(numbers.astype(np.float64))
    units = np.spacing(expected.astype(np.float32)).astype(np.float64)
    assert (np.abs(found - expected) / units).max() < 2


@pytest.mark.parametrize("x", [-np.inf, -1e30, -87.5])
def test_the_exponential_of_little_is_nothing(x: float) -> None:
    assert exponential(np.float32(x)) == 0.0
    assert np.isfinite(exponential(np.float32(-x)))
