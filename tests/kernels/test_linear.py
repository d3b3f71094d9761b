"""Products against float64's and whole numbers', and a row alone against a row among others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from apply_server.kernels.linear import float_linear
from apply_server.kernels.microkernel import BFLOAT16, INPUTS
from apply_server.target.int8 import has_int8, quantise_weight
from tests.kernels.numbers import noise

TYPES = ["float32", "bfloat16", "float16"]
# Of out and in: whole panels and units, one panel and less, and sums longer than what is added up
# at a time, by less than a step too.
SHAPES = [(128, 64), (16, 1), (1, 48), (70, 50), (80, 768), (24, 771), (40, 2050), (33, 4100)]
# Every size of a tile, and of what is left over.
ROWS = [*range(1, 26), 64, 129]

needs_bytes = pytest.mark.skipif(not has_int8(), reason="no products of bytes here")


def byte_product(weight: torch.Tensor, bias: torch.Tensor | None) -> Callable[..., torch.Tensor]:
    from apply_server.kernels.byte_linear import byte_linear

    return byte_linear(*quantised(weight), bias)


def quantised(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    from apply_server.kernels.byte_linear import LARGEST_WEIGHT

    return quantise_weight(weight, LARGEST_WEIGHT)


def as_multiplied(rows: torch.Tensor, dtype: str) -> torch.Tensor:
    """Rows as the products with weights of that type read them."""
    return rows.bfloat16() if dtype == "bfloat16" and INPUTS[BFLOAT16] > 1 else rows


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_product_with_what_is_rounded_and_the_bias(
    dtype: str, shape: tuple[int, int]
) -> None:
    weight, bias = noise(*shape), noise(shape[0], seed=2)
    rows = noise(max(ROWS), shape[1], seed=1)
    kept = weight.to(getattr(torch, dtype)).double()
    expected = as_multiplied(rows, dtype).double() @ kept.T + bias
    product = float_linear(dtype)(weight, bias)(rows)
    assert product.dtype == torch.float32
    assert product.is_contiguous()
    torch.testing.assert_close(product.double(), expected, rtol=1e-5, atol=1e-5 * shape[1] ** 0.5)
    unbiased = float_linear(dtype)(weight, None)(rows)
    torch.testing.assert_close(unbiased + bias, product, rtol=1e-5, atol=1e-5 * shape[1] ** 0.5)


@needs_bytes
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_bytes_are_multiplied_exactly(shape: tuple[int, int], size: float) -> None:
    weight, rows = noise(*shape), noise(max(ROWS), shape[1], seed=1) * size
    bias = noise(shape[0], seed=2)
    rows[1] = 0.0
    rows[2], weight[0] = 1.0, 1.0  # the largest of both everywhere: what saturates first
    whole_weight, scale = quantised(weight)
    unit = rows.abs().amax(1, keepdim=True).clamp_min(1e-30) / 127
    whole = (rows / unit).round().double() @ whole_weight.double().T  # whole numbers below 2^53
    expected = whole.float() * scale * unit + bias
    assert torch.equal(byte_product(weight, bias)(rows), expected)
    assert torch.equal(byte_product(weight, None)(rows), whole.float() * scale * unit)


@pytest.mark.parametrize("kind", [*TYPES, pytest.param("int8", marks=needs_bytes)])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_is_the_same_bits_in_every_block(kind: str, shape: tuple[int, int]) -> None:
    weight, bias = noise(*shape), noise(shape[0], seed=2)
    product = byte_product(weight, bias) if kind == "int8" else float_linear(kind)(weight, bias)
    rows = noise(max(ROWS), shape[1], seed=1)
    whole = product(rows)
    for count in ROWS:
        assert torch.equal(product(rows[:count]), whole[:count]), count
        assert torch.equal(product(rows[-count:]), whole[-count:]), count


@pytest.mark.parametrize("dtype", TYPES)
def test_rows_may_lie_anywhere(dtype: str) -> None:
    product, rows = float_linear(dtype)(noise(20, 30), None), noise(30, 9, seed=1).T
    assert torch.equal(product(rows), product(rows.contiguous()))
    assert product(rows[:0]).shape == (0, 20)


@pytest.mark.parametrize("kind", [*TYPES, pytest.param("int8", marks=needs_bytes)])
def test_the_weights_are_kept_once(kind: str) -> None:
    weight = noise(512, 256)
    product = byte_product(weight, None) if kind == "int8" else float_linear(kind)(weight, None)
    size = 1 if kind == "int8" else getattr(torch, kind).itemsize
    cells = [cell.cell_contents for cell in product.__closure__ or ()]
    kept = sum(each.nbytes for each in cells if isinstance(each, torch.Tensor))
    assert weight.numel() * size <= kept < 1.1 * weight.numel() * size
