"""The lean pass against the model's own forward, and in int8 a row among others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from apply_server.decode.draft import Draft, NoDraft
from apply_server.errors import Remedy
from apply_server.kernels.linear import float_linear
from apply_server.target import lean, support
from apply_server.target.attention import Block
from apply_server.target.int8 import has_int8, int8_linear, quantise_weight
from apply_server.target.kv_cache import KVCache
from apply_server.target.lean import LeanNetwork, Shape
from apply_server.target.transformers_model import StockNetwork, TransformersTarget
from apply_server.target.tree_mask import block_mask, depths
from tests.conftest import FAMILIES, TINY_VOCABULARY, tiny_model
from tests.decode.running import run

PROMPT = [5, 9, 2, 40, 17, 33, 8]

needs_int8 = pytest.mark.skipif(not has_int8(), reason="no exact int8 product here")
INT8 = pytest.param("int8", marks=needs_int8)


KINDS = [INT8, "float32", "bfloat16", "float16"]


def lean_target(model: Any, kind: str) -> TransformersTarget:
    linear = int8_linear() if kind == "int8" else float_linear(kind)
    weights = model.state_dict()
    return TransformersTarget(LeanNetwork(Shape.of(model.config), kind, linear, weights.get), 2048)


def logits(target: TransformersTarget, prompt: list[int], draft: Draft) -> torch.Tensor:
    """[1 + len(draft), vocabulary]: the draft behind the prompt's last token, in one pass."""
    *before, pending = prompt
    cache = KVCache(len(prompt) + len(draft))
    given = Draft.chain(before[1:])
    target.network(before, range(len(before)), [block(cache, given)], 1)
    cache.keep(range(len(before)))
    positions = [len(before) + depth for depth in depths(draft)]
    rows, hidden = target.network([pending, *draft.tokens], positions, [block(cache, draft)], 0)
    torch.testing.assert_close(target.network.project(hidden), rows)
    return rows


def block(cache: KVCache, draft: Draft) -> Block:
    return Block(cache, slice(0, 1 + len(draft)), block_mask(draft, "cpu"))


TREE = Draft((4, 8, 15, 16, 23), (-1, 0, -1, 2, 1))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tied", [True, False])
def test_in_float32_the_logits_are_the_stock_models(family: str, tied: bool) -> None:
    model = tiny_model(family, tie_word_embeddings=tied)
    stock, ours = TransformersTarget(StockNetwork(model), 2048), lean_target(model, "float32")
    for draft in (Draft(), Draft.chain([7, 7, 1]), TREE):
        expected = logits(stock, PROMPT, draft)
        torch.testing.assert_close(logits(ours, PROMPT, draft), expected, rtol=2e-5, atol=2e-5)


@needs_int8
@pytest.mark.parametrize("family", FAMILIES)
def test_in_int8_the_logits_are_near_the_stock_models(family: str) -> None:
    model = tiny_model(family, hidden_size=128, intermediate_size=256, initializer_range=0.1)
    stock, ours = TransformersTarget(StockNetwork(model), 2048), lean_target(model, "int8")
    expected, got = logits(stock, PROMPT, TREE), logits(ours, PROMPT, TREE)
    assert (got - expected).abs().mean() < 0.1 * expected.abs().mean()


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_weights_of_16_bits_are_computed_with_as_in_float32(family: str, kind: str) -> None:
    model = tiny_model(family, initializer_range=0.1)
    ours, dtype = lean_target(model, kind), getattr(torch, kind)
    stock = TransformersTarget(StockNetwork(model.to(dtype).float()), 2048)
    expected, got = logits(stock, PROMPT, TREE), logits(ours, PROMPT, TREE)
    assert (got - expected).abs().max() < 0.02 * expected.abs().max()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_is_the_same_bits_in_every_block(family: str, kind: str) -> None:
    target = lean_target(tiny_model(family, num_attention_heads=4, head_dim=16), kind)
    assert target.tolerance == 0.0
    text = [(7 * i * i + 3) % TINY_VOCABULARY for i in range(64)]
    whole = logits(target, PROMPT, Draft.chain(text))
    for count in range(64):
        rows = logits(target, PROMPT, Draft.chain(text[:count]))
        assert torch.equal(rows, whole[: 1 + count]), count
    # and fed one at a time, each behind what the passes before it left in the cache
    slot = target.open(PROMPT, 100)
    for _ in target.prefill(slot):
        pass
    for row, token in enumerate(text):
        assert torch.equal(target.logits_after(slot), whole[row]), row
        target.verify([(slot, Draft())])
        target.commit(slot, (), token)


@pytest.mark.parametrize("kind", KINDS)
def test_a_trees_branches_are_the_chains_bits(kind: str) -> None:
    target = lean_target(tiny_model("qwen2"), kind)
    tree = logits(target, PROMPT, TREE)
    for path in ([0, 1, 4], [2, 3]):
        chain = logits(target, PROMPT, Draft.chain([TREE.tokens[i] for i in path]))
        assert torch.equal(chain, tree[[0, *(1 + i for i in path)]])


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_its_members_bits(kind: str) -> None:
    target = lean_target(tiny_model("llama"), kind)
    prompts = [PROMPT, PROMPT[:2], PROMPT * 9]
    alone = [run(target, prompt, NoDraft(), 12).output for prompt in prompts]
    slots = [target.open(prompt, 20) for prompt in prompts]
    for slot in slots:
        for _ in target.prefill(slot):
            pass
    together: list[list[int]] = [[] for _ in prompts]
    for _ in range(12):
        for slot, verdict, output in zip(
            slots, target.verify([(slot, Draft()) for slot in slots]), together, strict=True
        ):
            output.append(verdict.choices[0])
            target.commit(slot, (), verdict.choices[0])
    assert together == [list(output) for output in alone]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_float_types_are_loaded_as_exact(dtype: str, tmp_path: Path) -> None:
    model = tiny_model("llama")
    model.save_pretrained(tmp_path)
    target = TransformersTarget.load(tmp_path, "cpu", dtype)
    assert target.dtype == dtype
    assert target.tolerance == target.spread(PROMPT) == 0.0


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_act": "gelu"},
        {"model_type": "mistral"},
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}},
        {"layer_types": ["sliding_attention", "full_attention"]},
    ],
)
def test_what_computes_differently_keeps_its_own_forward(change: dict[str, Any]) -> None:
    config = tiny_model("qwen2").config
    assert lean.fits(config)
    for name, value in change.items():
        setattr(config, name, value)
    assert not lean.fits(config)


@pytest.mark.parametrize(("device", "fits"), [("cuda", True), ("cpu", False)])
def test_int8_where_it_is_not_to_be_had_is_refused(device: str, fits: bool) -> None:
    with pytest.raises(support.ModelUnavailable) as caught:
        support.resolve_dtype("int8", device, lean=fits)
    assert caught.value.remedy == Remedy("dtype", ("auto",), "chooses what works.")


@pytest.mark.parametrize("rows", [1, 128, 300])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_are_quantised_as_a_whole_and_left_as_they_were(
    rows: int, dtype: torch.dtype
) -> None:
    weight = torch.randn(rows, 16, generator=torch.Generator().manual_seed(rows)).to(dtype)
    weight[0] = 0.0
    kept = weight.clone()
    quantised, scale = quantise_weight(weight, 63)
    assert torch.equal(weight, kept)
    unit = weight.float().abs().amax(1).clamp_min(1e-30) / 63
    assert torch.equal(scale, unit)
    assert torch.equal(quantised, (weight.float() / unit[:, None]).round().to(torch.int8))
    assert quantised.abs().amax() == (63 if rows > 1 else 0)
