"""The cache against a plain list of rows."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.target.kv_cache import KVCache

LAYERS, HEADS, DIM = 2, 2, 3


def rows(*numbers: int) -> torch.Tensor:
    """[heads, n, dim]: every row recognisable in each head and dimension."""
    block = torch.tensor(numbers, dtype=torch.float32)[None, :, None]
    return block + torch.arange(HEADS)[:, None, None] / 4 + torch.arange(DIM) / 16


def write(cache: KVCache, *numbers: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    keys = rows(*numbers)
    return [cache.write(layer, keys, -keys - layer) for layer in range(LAYERS)]


def check(cache: KVCache, numbers: list[int]) -> None:
    """The committed rows are these, in every layer; seen by writing an empty block."""
    assert cache.length == len(numbers)
    for layer in range(LAYERS):
        keys, values = cache.write(layer, rows(), rows())
        torch.testing.assert_close(keys, rows(*numbers), rtol=0, atol=0)
        torch.testing.assert_close(values, -rows(*numbers) - layer, rtol=0, atol=0)


def test_a_block_is_seen_behind_what_is_committed_but_not_committed() -> None:
    cache = KVCache(8)
    write(cache, 1, 2)
    cache.keep([0, 1])
    for layer, (keys, values) in enumerate(write(cache, 3, 4, 5)):
        torch.testing.assert_close(keys, rows(1, 2, 3, 4, 5))
        torch.testing.assert_close(values, -rows(1, 2, 3, 4, 5) - layer)
    check(cache, [1, 2])


def test_a_rejected_block_leaves_no_trace() -> None:
    cache = KVCache(8)
    write(cache, 1)
    cache.keep([0])
    write(cache, 7, 8, 9)
    cache.keep([])
    write(cache, 2)
    cache.keep([0])
    check(cache, [1, 2])


@pytest.mark.parametrize(
    "kept", [[0], [0, 1, 2], [0, 2], [1], [0, 1, 3, 5], [2, 3, 4], [0, 3, 4, 5], [0, 5]]
)
def test_the_kept_rows_follow_each_other(kept: list[int]) -> None:
    cache = KVCache(20)
    write(cache, 90, 91)
    cache.keep([0, 1])
    write(cache, 10, 11, 12, 13, 14, 15)
    cache.keep(kept)
    check(cache, [90, 91, *(10 + row for row in kept)])


@settings(deadline=None, max_examples=50)
@given(
    blocks=st.lists(
        st.tuples(st.integers(1, 6), st.sets(st.integers(0, 5)), st.integers(0, 3)), max_size=8
    )
)
def test_any_history_equals_a_list(blocks: list[tuple[int, set[int], int]]) -> None:
    cache, number = KVCache(60), 0
    expected: list[int] = []
    for size, chosen, forgotten in blocks:
        block = list(range(number, number + size))
        number += size
        write(cache, *block)
        kept = sorted(row for row in chosen if row < size)
        cache.keep(kept)
        expected += [block[row] for row in kept]
        length = max(0, len(expected) - forgotten)
        cache.rewind(length)
        del expected[length:]
        check(cache, expected)


def test_nothing_is_copied_to_keep_a_prefix_or_to_rewind() -> None:
    cache = KVCache(8)
    before = write(cache, 1, 2, 3)[0][0].data_ptr()
    cache.keep([0, 1, 2])
    cache.rewind(1)
    assert write(cache, 4)[0][0].data_ptr() == before
    cache.keep([0])
    check(cache, [1, 4])


def test_the_type_and_the_head_size_are_the_models() -> None:
    cache = KVCache(4)
    keys, values = cache.write(0, rows(1).double(), rows(1)[..., :2].double())
    assert (keys.dtype, keys.shape, values.shape) == (torch.float64, (2, 1, 3), (2, 1, 2))


def test_a_block_beyond_the_capacity_is_refused_and_one_up_to_it_is_not() -> None:
    cache = KVCache(3)
    write(cache, 1, 2)
    cache.keep([0, 1])
    write(cache, 3)
    with pytest.raises(AssertionError, match="beyond the 3 allocated"):
        write(cache, 3, 4)
    check(cache, [1, 2])


@pytest.mark.parametrize("length", [-1, 3])
def test_only_what_is_cached_can_be_rewound_to(length: int) -> None:
    cache = KVCache(4)
    write(cache, 1, 2)
    cache.keep([0, 1])
    with pytest.raises(ValueError, match="2 tokens are cached"):
        cache.rewind(length)
    check(cache, [1, 2])
