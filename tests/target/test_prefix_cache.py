"""Earlier prompts' keys and values change what is computed anew, and never a bit of the result."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch

from apply_server.decode.draft import Draft
from apply_server.kernels.linear import float_linear
from apply_server.target import transformers_model
from apply_server.target.int8 import has_int8, int8_linear
from apply_server.target.kv_cache import KVCache
from apply_server.target.lean import LeanNetwork, Shape
from apply_server.target.prefix_cache import PrefixCache
from apply_server.target.transformers_model import (
    Network,
    StockNetwork,
    TransformersSlot,
    TransformersTarget,
)
from tests.conftest import TINY_VOCABULARY, tiny_model

ENOUGH = 1 << 20
ROW = 2 * 4 * 2 * 3  # bytes of a token in `computed`: keys and values, float32, [2, n, 3]


def computed(tokens: Sequence[int], capacity: int) -> KVCache:
    """A cache of one layer whose rows tell their token."""
    cache = KVCache(capacity)
    rows = torch.tensor([float(token) for token in tokens])[None, :, None].expand(2, -1, 3)
    cache.write(0, rows, -rows)
    cache.keep(range(len(tokens)))
    return cache


def known(prefixes: PrefixCache, prompt: Sequence[int]) -> list[int]:
    """The tokens of `prompt` that need no prefill, as the rows tell."""
    cache = prefixes.open(prompt, len(prompt) + 4)
    assert cache.capacity == len(prompt) + 4
    empty = torch.empty(2, 0, 3)
    keys, values = cache.write(0, empty, empty)
    assert torch.equal(keys, -values)
    return [int(token) for token in keys[0, :, 0]]


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        (range(10), range(10), 8),
        (range(10), range(20), 8),
        (range(20), range(10), 8),
        (range(9), range(9), 8),
        (range(8), range(8), 4),  # the last token is what the first pass starts from
        (range(20), range(8), 4),
        (range(8), range(20), 4),
        (range(10), [*range(6), 99, 98, 97], 4),
        (range(10), [*range(3), 99, 98, 97], 0),
        (range(10), [5], 0),
        (range(3), range(10), 0),
    ],
)
def test_whole_blocks_that_agree_are_used_again(
    earlier: Sequence[int], later: Sequence[int], expected: int
) -> None:
    prefixes = PrefixCache(4, ENOUGH)
    prefixes.keep(earlier, computed(list(earlier)[:-1], 30))
    assert known(prefixes, later) == list(later)[:expected]


def test_the_answer_and_an_unfinished_prompt_are_no_prefix() -> None:
    prefixes = PrefixCache(4, ENOUGH)
    prefixes.keep(range(6), computed(range(20), 30))
    assert known(prefixes, range(20)) == [0, 1, 2, 3]
    prefixes.keep(range(50, 70), computed(range(50, 58), 30))
    assert known(prefixes, range(50, 70)) == list(range(50, 58))
    prefixes.keep(range(80, 90), KVCache(30))
    assert known(prefixes, range(80, 90)) == []


def test_what_was_used_last_stays_longest() -> None:
    prefixes = PrefixCache(4, 16 * ROW)
    files = [[number] * 9 for number in range(3)]
    prefixes.keep(files[0], computed(files[0][:-1], 12))
    prefixes.keep(files[1], computed(files[1][:-1], 12))
    assert known(prefixes, files[0]) == files[0][:8]
    prefixes.keep(files[2], computed(files[2][:-1], 12))
    assert [len(known(prefixes, file)) for file in files] == [8, 0, 8]


def test_the_budget_cuts_a_long_prompt_and_none_keeps_nothing() -> None:
    prompt = list(range(40))
    for budget, expected in ((0, 0), (3 * ROW, 0), (13 * ROW, 12), (1000 * ROW, 36)):
        prefixes = PrefixCache(4, budget)
        prefixes.keep(prompt, computed(prompt[:-1], 60))
        assert known(prefixes, prompt) == prompt[:expected]


def test_a_longer_prompt_takes_the_place_of_its_own_beginning() -> None:
    prefixes = PrefixCache(4, 28 * ROW)
    prefixes.keep([9] * 9, computed([9] * 8, 12))
    for length in (9, 13, 17, 21, 13):
        prefixes.keep(range(length), computed(range(length - 1), 24))
    assert known(prefixes, [9] * 9) == [9] * 8, "there was room for both"
    assert known(prefixes, range(21)) == list(range(20))


def test_two_users_of_a_prefix_do_not_see_each_other() -> None:
    prefixes = PrefixCache(4, ENOUGH)
    prefixes.keep(range(9), computed(range(8), 12))
    first = prefixes.open(range(9), 12)
    first.write(0, torch.ones(2, 2, 3), torch.ones(2, 2, 3))
    first.rewind(2)
    first.write(0, torch.ones(2, 4, 3), torch.ones(2, 4, 3))
    assert known(prefixes, range(9)) == list(range(8))


NETWORKS = ["stock", "float32", "int8"]


def network(kind: str) -> Network:
    if kind == "int8" and not has_int8():
        pytest.skip("no exact int8 product here")
    model = tiny_model("qwen2", head_dim=16)
    if kind == "stock":
        return StockNetwork(model)
    linear = int8_linear() if kind == "int8" else float_linear(kind)
    return LeanNetwork(Shape.of(model.config), kind, linear, model.state_dict().get)


def answer(target: TransformersTarget, prompt: list[int]) -> tuple[int, list[torch.Tensor]]:
    """(tokens that needed no prefill, the logits after each of the first answer's tokens)."""
    slot: TransformersSlot = target.open(prompt, 8)
    cached = target.cached(slot)
    assert [cached, *target.prefill(slot)][-1] == len(prompt) - 1
    rows = []
    for _ in range(4):
        rows.append(target.logits_after(slot))
        (verdict,) = target.verify([(slot, Draft())])
        target.commit(slot, (), verdict.choices[0])
    target.close(slot)
    return cached, rows


@pytest.mark.parametrize("kind", NETWORKS)
def test_any_history_leaves_the_bits_of_a_first_request(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformers_model, "PREFILL_CHUNK", 16)
    shared = network(kind)
    cold = TransformersTarget(shared, 2048)
    # Room for a prompt and a half: some are cut, some are dropped.
    warm = TransformersTarget(shared, 2048, prefix_bytes=2 * 2 * 2 * 16 * 4 * 120)
    choose = random.Random(3)
    file = [choose.randrange(TINY_VOCABULARY) for _ in range(80)]
    reused = 0
    for _ in range(12):
        if choose.random() < 0.3:
            file[choose.randrange(len(file))] = choose.randrange(TINY_VOCABULARY)
        edit = [choose.randrange(TINY_VOCABULARY) for _ in range(choose.randrange(1, 30))]
        cached, rows = answer(warm, file + edit)
        reused += cached
        nothing, expected = answer(cold, file + edit)
        assert nothing == 0
        assert all(torch.equal(a, b) for a, b in zip(rows, expected, strict=True))
    assert reused > 300


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_file_computed_ahead_is_known_to_the_first_request(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformers_model, "PREFILL_CHUNK", 16)
    file = [(7 * i * i + 3) % TINY_VOCABULARY for i in range(70)]
    target = TransformersTarget(network(kind), 2048, prefix_bytes=ENOUGH)
    assert list(target.warm(file)) == [16, 32, 48, 64]
    assert list(target.warm(file)) == [64], "it is known already"
    cached, rows = answer(target, [*file, 5, 9, 2])
    assert cached == 64
    _, expected = answer(TransformersTarget(target.network, 2048), [*file, 5, 9, 2])
    assert all(torch.equal(a, b) for a, b in zip(rows, expected, strict=True))


def test_warming_that_is_stopped_keeps_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers_model, "PREFILL_CHUNK", 16)
    file = [(7 * i * i + 3) % TINY_VOCABULARY for i in range(70)]
    target = TransformersTarget(network("float32"), 2048, prefix_bytes=ENOUGH)
    for done in target.warm(file):
        if done == 32:
            break
    assert target.cached(target.open(file, 1)) == 32
    assert list(target.warm(file[:10])) == [], "shorter than a block"
