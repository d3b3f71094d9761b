"""Sums that are exact don't depend on their order, however large the numbers or far apart."""

from __future__ import annotations

import pytest
import torch

from apply_server.target.exact import ExactArithmetic
from apply_server.target.packed_linear import product

HEADS, KV_HEADS, ROWS, KEYS, DIM = 4, 2, 3, 500, 128


def exact() -> ExactArithmetic:
    return ExactArithmetic("float32", product)


def noise(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def cancelling(heads: int, rows: int, dim: int, size: float, seed: int) -> torch.Tensor:
    """Numbers whose sum over rows, and over columns, is nothing, but far from it half-way: what is
    left is the rounding of a sum that isn't exact.
    """
    part = noise(heads, rows // 2, dim // 2, seed=seed).abs() * size
    return torch.cat([torch.cat([part, -part], 1), torch.cat([-part, part], 1)], 2)


# Small and usual activations, and such as reach the largest that is kept.
# Of 2^15 keys a row's values add up to more than float64 holds exactly.
@pytest.mark.parametrize("count", [KEYS, 2**15])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e2, 1e6])
def test_the_order_of_keys_does_not_change_a_bit(size: float, count: int) -> None:
    arithmetic = exact()
    query = arithmetic.settled(noise(HEADS, ROWS, DIM, seed=0))
    # What cancels has equal shares.
    keys = arithmetic.settled(noise(KV_HEADS, count // 2, DIM, seed=1).repeat(1, 2, 1))
    rest = noise(KV_HEADS, count, DIM, seed=2)
    values = arithmetic.settled(cancelling(KV_HEADS, count, DIM, size, seed=3) + rest)
    mask = (noise(ROWS, count // 2, seed=4) > 0).repeat(1, 2)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(5))
    found = arithmetic.attend(query, keys, values, mask, 0.002)
    moved = arithmetic.attend(query, keys[:, order], values[:, order], mask[:, order], 0.002)
    assert torch.equal(found, moved)


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4, 1e6])
def test_the_order_of_a_heads_numbers_does_not_change_a_bit(size: float) -> None:
    arithmetic = exact()
    query = arithmetic.settled(noise(HEADS, ROWS, DIM // 2, seed=4).repeat(1, 1, 2) * size)
    keys = arithmetic.settled(cancelling(KV_HEADS, KEYS, DIM, size, seed=1))
    values = arithmetic.settled(noise(KV_HEADS, KEYS, DIM, seed=2))
    mask = torch.ones(ROWS, KEYS, dtype=torch.bool)
    order = torch.randperm(DIM, generator=torch.Generator().manual_seed(3))
    scale = 2.0**24  # one unit in a sum would change all shares
    found = arithmetic.attend(query, keys, values, mask, scale)
    turned = (each[..., order] for each in (query, keys))
    assert torch.equal(found, arithmetic.attend(*turned, values, mask, scale))


def test_attention_is_that_of_float64() -> None:
    arithmetic = exact()
    query, keys, values = (
        noise(heads, rows, DIM, seed=seed)
        for seed, (heads, rows) in enumerate([(HEADS, ROWS), (KV_HEADS, KEYS), (KV_HEADS, KEYS)])
    )
    mask = noise(ROWS, KEYS, seed=3) > 0
    settled = [arithmetic.settled(each.clone()) for each in (query, keys, values)]
    expected = torch.nn.functional.scaled_dot_product_attention(
        query.double(), keys.double(), values.double(), mask, scale=0.1, enable_gqa=True
    ).float()
    for attend in (arithmetic.attend, arithmetic.attend_prompt):
        torch.testing.assert_close(attend(*settled, mask, 0.1), expected, rtol=1e-3, atol=1e-3)


def test_what_is_settled_are_whole_numbers_of_24_bits_in_float32() -> None:
    numbers = noise(HEADS, ROWS, DIM, seed=0) * 1e3
    settled = exact().settled(numbers.clone())
    assert settled.dtype == torch.float32
    expected = (numbers.double() * 2**12).clamp(1 - 2**23, 2**23 - 1).round()
    assert expected.abs().max() == 2**23 - 1
    assert torch.equal(settled.double(), expected)


@pytest.mark.parametrize("outlier", [1.0, 1e4])
def test_the_order_of_a_row_does_not_change_its_norm(outlier: float) -> None:
    arithmetic = exact()
    rows, weight = noise(5, 1536, seed=0), noise(1536, seed=1)
    rows[:, 7] *= outlier
    rows[3] = 0.0
    order = torch.randperm(1536, generator=torch.Generator().manual_seed(2))
    found = arithmetic.norm(rows, weight, 1e-6)
    assert torch.equal(found[:, order], arithmetic.norm(rows[:, order], weight[order], 1e-6))
    torch.testing.assert_close(found, torch.nn.functional.rms_norm(rows, (1536,), weight, 1e-6))
