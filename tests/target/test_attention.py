"""Attention over packed rows against a loop over single queries in double precision."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.decode.draft import Draft
from apply_server.target.attention import (
    NAME,
    SHORT_BLOCK,
    Block,
    attend,
    packed_attention,
    register,
)
from apply_server.target.kv_cache import KVCache
from apply_server.target.tree_mask import block_mask

HEADS, KV_HEADS, DIM = 4, 2, 8
LAYER = SimpleNamespace(layer_idx=0)


def reference(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, scale: float
) -> torch.Tensor:
    """Softmax attention by its definition, one head and one row at a time; `mask` as for attend."""
    heads, rows, _ = query.shape
    group = heads // keys.shape[0]
    out = torch.zeros(heads, rows, values.shape[-1], dtype=torch.float64)
    for head in range(heads):
        for row in range(rows):
            seen = torch.ones(keys.shape[1], dtype=torch.bool)
            seen[-mask.shape[1] :] = mask[row]
            scores = keys[head // group, seen].double() @ query[head, row].double() * scale
            out[head, row] = scores.softmax(0) @ values[head // group, seen].double()
    return out.float()


def random(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("rows", [1, 2, 9, SHORT_BLOCK, SHORT_BLOCK + 1, SHORT_BLOCK + 30])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_both_kernels_are_the_definition(rows: int, kv_heads: int) -> None:
    cached = 5
    query = random(1, HEADS, rows, DIM)
    keys, values = (random(seed, kv_heads, cached + rows, DIM) for seed in (2, 3))
    mask = block_mask(Draft.chain(range(rows - 1)), "cpu")
    found = attend(query, keys, values, mask, 0.3)
    assert found.shape == (HEADS, rows, DIM)
    expected = reference(query, keys, values, mask, 0.3)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(choices=st.lists(st.integers(0, 100), min_size=1, max_size=10), seed=st.integers(0, 100))
def test_a_tree_row_attends_to_its_own_path(choices: list[int], seed: int) -> None:
    parents = tuple(choice % (i + 1) - 1 for i, choice in enumerate(choices))
    draft = Draft(tuple(range(len(choices))), parents)
    rows, cached = 1 + len(draft), 3
    query = random(seed, HEADS, rows, DIM)
    keys, values = (random(seed + i, KV_HEADS, cached + rows, DIM) for i in (1, 2))
    mask = block_mask(draft, "cpu")
    torch.testing.assert_close(
        attend(query, keys, values, mask, DIM**-0.5),
        reference(query, keys, values, mask, DIM**-0.5),
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize("scaling", [None, 0.5])
def test_slots_of_a_batch_see_nothing_of_each_other(scaling: float | None) -> None:
    total, sizes, cached = 12, (1, 8, 3), (0, 4, 7)
    query = random(1, 1, HEADS, total, DIM)
    key, value = (random(seed, 1, KV_HEADS, total, DIM) for seed in (2, 3))
    blocks, start = [], 0
    for number, (size, length) in enumerate(zip(sizes, cached, strict=True)):
        cache = KVCache(length + size)
        past = random(10 + number, KV_HEADS, length, DIM)
        cache.write(0, past, past + 1)
        cache.keep(range(length))
        mask = block_mask(Draft.chain(range(size - 1)), "cpu")
        blocks.append(Block(cache, slice(start, start + size), mask))
        start += size
    out, weights = packed_attention(
        LAYER, query, key, value, None, blocks=blocks, scaling=scaling, dropout=0.0
    )
    assert weights is None
    assert out.shape == (1, total, HEADS, DIM)
    for number, block in enumerate(blocks):
        past = random(10 + number, KV_HEADS, block.cache.length, DIM)
        expected = reference(
            query[0, :, block.rows],
            torch.cat([past, key[0, :, block.rows]], dim=1),
            torch.cat([past + 1, value[0, :, block.rows]], dim=1),
            block.mask,
            scaling or DIM**-0.5,
        )
        torch.testing.assert_close(
            out[0, block.rows].transpose(0, 1), expected, rtol=1e-5, atol=1e-5
        )


def test_a_pass_commits_nothing() -> None:
    cache = KVCache(4)
    block = Block(cache, slice(0, 2), block_mask(Draft.chain([0]), "cpu"))
    states = random(1, 1, KV_HEADS, 2, DIM)
    packed_attention(LAYER, random(2, 1, HEADS, 2, DIM), states, states, None, blocks=[block])
    assert cache.length == 0


def test_scores_are_weighed_in_float32_whatever_the_models_type() -> None:
    query, keys, values = (random(i, KV_HEADS, 6, DIM).bfloat16() for i in range(3))
    mask = block_mask(Draft.chain(range(5)), "cpu")
    found = attend(query, keys, values, mask, 1.0)
    assert found.dtype == torch.bfloat16
    expected = reference(query, keys, values, mask, 1.0)
    torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.05)


def test_it_can_be_registered_again() -> None:
    from transformers import AttentionInterface

    register()
    register()
    assert AttentionInterface()[NAME] is packed_attention
