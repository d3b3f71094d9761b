"""Near-ties: what a block can't decide is decided by a pass over one token, as plain decoding's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from apply_server.decode.accept import accept
from apply_server.decode.draft import Draft, NoDraft
from apply_server.decode.target import UNDECIDED, Verdict
from apply_server.target.attention import Block
from apply_server.target.choose import TOLERANCES
from apply_server.target.transformers_model import TransformersTarget
from tests.decode.proposers import Oracle
from tests.decode.running import run

VOCABULARY = 8
# The next token is the last one plus one. After these, the token and the one after it are equal but
# for rounding, which in this network prefers the wrong one wherever several tokens are fed at once.
TIES = frozenset({2, 5})
PLAIN = [1, 2, 3, 4, 5, 6, 7, 0] * 3


class Flipping:
    """A network whose near-ties flip with the shape of the block, by `by` in each direction."""

    device, dtype, tolerance = "cpu", "float32", 1e-3

    def __init__(self, by: float) -> None:
        self.by = by
        self.fed: list[int] = []

    def __call__(
        self, tokens: Sequence[int], positions: Sequence[int], blocks: Sequence[Block], logits: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.fed.append(len(tokens))
        result = torch.zeros(len(tokens), VOCABULARY)
        for block in blocks:
            rows = len(range(*block.rows.indices(len(tokens))))
            block.cache.write(0, torch.zeros(1, rows, 1), torch.zeros(1, rows, 1))
        for row, token in enumerate(tokens):
            right, wrong = (token + 1) % VOCABULARY, (token + 2) % VOCABULARY
            result[row, right] = 1.0
            if token in TIES:
                result[row, wrong] = 1.0 + (self.by if len(tokens) > 1 else -self.by)
        return result[-logits:], result[-logits:]

    def project(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden


def target(by: float = 1e-4) -> tuple[TransformersTarget, Flipping]:
    network = Flipping(by)
    return TransformersTarget(network, context=256), network


def test_plain_decoding_is_never_in_doubt() -> None:
    ours, network = target()
    session = run(ours, [0], NoDraft(), len(PLAIN))
    assert list(session.output) == PLAIN
    assert session.counters.arbitrations == 0
    assert set(network.fed) == {1}


@pytest.mark.parametrize("length", [1, 2, 3, 5, 24])
def test_what_flips_in_a_block_comes_out_as_plain(length: int) -> None:
    ours, network = target()
    session = run(ours, [0], Oracle(PLAIN, length), len(PLAIN))
    assert list(session.output) == PLAIN
    assert session.counters.arbitrations > 0
    assert session.counters.target_passes <= len(PLAIN)
    assert session.counters.target_passes == ours.passes == len(network.fed)


def test_each_near_tie_costs_one_pass_over_one_token() -> None:
    ours, _ = target()
    session = run(ours, [0], Oracle(PLAIN, len(PLAIN)), len(PLAIN))
    ties = sum(token in TIES for token in PLAIN[:-1])
    assert session.counters.arbitrations == ties


def test_exact_arithmetic_is_taken_at_its_word() -> None:
    ours, _ = target()
    ours.tolerance = 0.0
    session = run(ours, [0], Oracle(PLAIN, 8), 3)
    assert session.counters.arbitrations == 0
    assert list(session.output) != PLAIN[:3]


def test_what_flips_farther_than_its_type_should_is_found_by_measuring() -> None:
    ours, network = target(by=1e-2)
    assert list(run(ours, [0], Oracle(PLAIN, 8), len(PLAIN)).output) != PLAIN
    ours.widen_tolerance(ours.spread(PLAIN))
    session = run(ours, [0], Oracle(PLAIN, 8), len(PLAIN))
    assert list(session.output) == PLAIN
    assert session.counters.arbitrations > 0
    assert network.tolerance < 2e-2 < ours.tolerance < 0.2


def test_what_hardly_moves_keeps_its_types_tolerance() -> None:
    ours, network = target(by=1e-6)
    ours.widen_tolerance(ours.spread(PLAIN))
    assert ours.tolerance == network.tolerance


def test_what_is_the_same_bits_in_every_block_stays_exact() -> None:
    ours, _ = target(by=0.0)
    ours.tolerance = 0.0
    ours.widen_tolerance(ours.spread(PLAIN))
    assert ours.tolerance == 0.0


def test_what_is_held_to_be_exact_and_is_not_gets_its_types_tolerance() -> None:
    ours, network = target(by=1e-6)
    ours.tolerance = 0.0
    ours.widen_tolerance(ours.spread(PLAIN))
    assert ours.tolerance == TOLERANCES[network.dtype]


def test_a_walk_ends_before_a_node_whose_choice_is_undecided() -> None:
    draft = Draft.chain([4, 5, 6])
    assert accept(draft, Verdict((4, 5, UNDECIDED, 9))) == ((0,), 5)
    assert accept(draft, Verdict((4, UNDECIDED, 6, 9))) == ((), 4)
    assert accept(draft, Verdict((7, UNDECIDED, 6, 9))) == ((), 7)
