"""Positions and masks against the definition: a row sees the cache and its own path."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.decode.draft import Draft
from apply_server.target.tree_mask import block_mask, depths


def draft_of(choices: list[int]) -> Draft:
    """A tree whose node i hangs on one of the i nodes before it, or on the root."""
    parents = tuple(choice % (i + 1) - 1 for i, choice in enumerate(choices))
    return Draft(tuple(range(len(choices))), parents)


trees = st.lists(st.integers(0, 1000), max_size=12).map(draft_of)


def path_rows(draft: Draft, row: int) -> list[int]:
    """A row and its ancestors down to the pending token, as rows of the block."""
    path = [row]
    while path[-1] > 0:
        path.append(1 + draft.parents[path[-1] - 1])
    return path


@settings(deadline=None)
@given(draft=trees)
def test_a_row_sees_itself_and_its_ancestors(draft: Draft) -> None:
    mask = block_mask(draft, "cpu")
    assert mask.dtype == torch.bool
    assert mask.shape == (1 + len(draft), 1 + len(draft))
    for row in range(1 + len(draft)):
        assert set(mask[row].nonzero().flatten().tolist()) == set(path_rows(draft, row))


@given(draft=trees)
def test_a_position_is_the_depth_and_not_the_index(draft: Draft) -> None:
    assert depths(draft) == [len(path_rows(draft, row)) - 1 for row in range(1 + len(draft))]


def test_two_branches_stand_at_the_same_positions() -> None:
    draft = Draft((7, 8, 9, 6), (-1, 0, -1, 2))
    assert depths(draft) == [0, 1, 2, 1, 2]
    assert block_mask(draft, "cpu").int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [1, 0, 0, 1, 1],
    ]


@pytest.mark.parametrize("length", [0, 1, 5, 64])
def test_a_chain_is_causal(length: int) -> None:
    mask = block_mask(Draft.chain(range(length)), "cpu")
    assert torch.equal(mask, torch.ones_like(mask).tril())
