"""Products against float64's and whole numbers', and a row alone against a row among others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from apply_server.kernels.linear import float_linear
from apply_server.kernels.processor import multiplies_bytes
from apply_server.target.int8 import fbgemm_linear, quantise_weight, weight_maximum
from tests.kernels.numbers import noise

TYPES = ["float32", "bfloat16", "float16"]
# Of out and in: whole panels and units, one panel and less, and sums longer than what is added up
# at a time, by less than a step too.
SHAPES = [(128, 64), (16, 1), (1, 48), (70, 50), (80, 768), (24, 771), (40, 2050), (33, 4100)]
# Every size of a tile, and of what is left over.
ROWS = [*range(1, 26), 64, 129]

needs_bytes = pytest.mark.skipif(not multiplies_bytes(), reason="no products of bytes here")


def byte_product(weight: torch.Tensor, bias: torch.Tensor | None) -> Callable[..., torch.Tensor]:
    from apply_server.kernels.byte_linear import byte_linear

    return byte_linear(*quantise_weight(weight, 63), bias)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_product_with_the_rounded_weight_and_the_bias(
    dtype: str, shape: tuple[int, int]
) -> None:
    weight, bias = noise(*shape), noise(shape[0], seed=2)
    rows = noise(max(ROWS), shape[1], seed=1)
    kept = weight.to(getattr(torch, dtype)).double()
    expected = rows.double() @ kept.T + bias
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
    quantised, scale = quantise_weight(weight, 63)
    unit = rows.abs().amax(1, keepdim=True).clamp_min(1e-30) / 127
    whole = (rows / unit).round().double() @ quantised.double().T  # whole numbers below 2^53
    expected = whole.float() * scale * unit + bias
    assert torch.equal(byte_product(weight, bias)(rows), expected)
    assert torch.equal(byte_product(weight, None)(rows), whole.float() * scale * unit)


@needs_bytes
@pytest.mark.skipif(weight_maximum() is None, reason="torch has no product of bytes here")
def test_bytes_give_the_bits_of_torchs_product() -> None:
    weight, bias, rows = noise(70, 50), noise(70, seed=2), noise(40, 50, seed=1)
    quantised = quantise_weight(weight, 63)
    expected = fbgemm_linear(*quantised, bias)(rows)
    assert torch.equal(byte_product(weight, bias)(rows), expected)


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
