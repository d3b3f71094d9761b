"""Attention against float64's, and a row alone against a row among others and other branches."""

from __future__ import annotations

import pytest
import torch

from apply_server.kernels.attention import attention
from tests.kernels.numbers import noise

# heads, heads of keys, numbers of a head: the default model's, SmolLM2's, tests' tiny ones.
HEADS = [(12, 2, 128), (9, 3, 64), (4, 4, 16), (4, 2, 8), (2, 1, 20)]
# Keys before the block: none, as many as values are read of at a time, and so many that it lies
# across two such reads.
CACHED = [0, 5, 256, 500]


def problem(heads: tuple[int, int, int], cached: int, rows: int) -> tuple[torch.Tensor, ...]:
    """Query, keys, values, and a chain's mask; keys and values are views of a longer cache."""
    count, kv_count, dim = heads
    query = noise(rows, count, dim, seed=1).transpose(0, 1)
    keys, values = (
        noise(kv_count, cached + rows + 9, dim, seed=seed)[:, : cached + rows] for seed in (2, 3)
    )
    return query, keys, values, torch.ones(rows, rows, dtype=torch.bool).tril()


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("cached", CACHED)
@pytest.mark.parametrize("rows", [1, 3, 33])
@pytest.mark.parametrize("size", [1.0, 1e2])
def test_it_is_float64s(heads: tuple[int, int, int], cached: int, rows: int, size: float) -> None:
    query, keys, values, mask = problem(heads, cached, rows)
    query *= size
    seen = torch.nn.functional.pad(mask, (cached, 0), value=True)
    expected = torch.nn.functional.scaled_dot_product_attention(
        query.double(), keys.double(), values.double(), seen, scale=0.1, enable_gqa=True
    )
    found = attention(query, keys, values, mask, 0.1)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5 * size)


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("cached", CACHED)
def test_a_row_is_the_same_bits_in_every_block(heads: tuple[int, int, int], cached: int) -> None:
    query, keys, values, mask = problem(heads, cached, 64)
    whole = attention(query, keys, values, mask, 0.1)
    for first, last in [(0, 1), (5, 6), (63, 64), (0, 7), (10, 43), (1, 64)]:
        own = mask[first:last, first:last]
        end = cached + last
        found = attention(query[:, first:last], keys[:, :end], values[:, :end], own, 0.1)
        assert torch.equal(found, whole[:, first:last]), (first, last)


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("cached", CACHED)
def test_branches_between_a_rows_keys_do_not_change_a_bit(
    heads: tuple[int, int, int], cached: int
) -> None:
    query, keys, values, mask = problem(heads, cached, 40)
    own = torch.arange(40) % 3 == 0
    mask = mask & own  # only every third row of the block is seen
    there = torch.cat([torch.ones(cached, dtype=torch.bool), own])
    tree = attention(query[:, own], keys, values, mask[own], 0.1)
    chain = attention(query[:, own], keys[:, there], values[:, there], mask[own][:, own], 0.1)
    assert torch.equal(tree, chain)


def test_what_a_row_does_not_see_may_be_anything() -> None:
    query, keys, values, mask = problem(HEADS[0], 5, 20)
    found = attention(query, keys, values, mask, 0.1)
    keys[:, 6:], values[:, 6:] = 1e30, 1e30
    assert torch.equal(attention(query, keys, values, mask, 0.1)[:, 0], found[:, 0])


def test_shares_that_are_nothing_are_no_numbers_too_small_for_float32() -> None:
    query, keys, values, mask = problem(HEADS[0], 300, 1)
    found = attention(query * 1e6, keys, values, mask, 1.0)
    largest = (query.double() @ keys.double().repeat_interleave(6, 0).mT).argmax(-1)[:, 0]
    expected = torch.stack([values[head // 6, key] for head, key in enumerate(largest)])
    assert torch.equal(found[:, 0], expected)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_a_bit(threads: int) -> None:
    query, keys, values, mask = problem(HEADS[1], 700, 33)
    before = torch.get_num_threads()
    expected = attention(query, keys, values, mask, 0.1)
    try:
        torch.set_num_threads(threads)
        assert torch.equal(attention(query, keys, values, mask, 0.1), expected)
    finally:
        torch.set_num_threads(before)
