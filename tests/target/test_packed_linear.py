"""Products in every layout against plain ones, and which layout is taken."""

from __future__ import annotations

import math

import pytest
import torch

from apply_server.decode.draft import NoDraft
from apply_server.target import packed_linear
from apply_server.target.packed_linear import (
    Layout,
    fastest_layout,
    pack_linears,
    packed,
    plain,
    product,
    widened,
)
from apply_server.target.transformers_model import StockNetwork, TransformersTarget
from tests.conftest import tiny_model
from tests.decode.running import run

PROMPT = [5, 9, 2, 40, 17]


def has_packed_products() -> bool:
    return packed_linear._seconds(packed, torch.ones(16, 16)) < math.inf


needs_packed = pytest.mark.skipif(not has_packed_products(), reason="no packed product here")
LAYOUTS = [plain, pytest.param(packed, marks=needs_packed), widened]


def fastest_is(monkeypatch: pytest.MonkeyPatch, *layouts: Layout) -> None:
    """Whatever the clock says: what is measured depends on who else uses the machine."""
    order = [*layouts, plain, packed, widened]
    monkeypatch.setattr(packed_linear, "_seconds", lambda layout, weight: order.index(layout))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rows", [1, 2, 16, 64, 200])
@pytest.mark.parametrize("with_bias", [True, False])
def test_a_product_is_the_plain_one_in_every_layout(
    layout: Layout, rows: int, with_bias: bool
) -> None:
    torch.manual_seed(rows)
    layer = torch.nn.Linear(48, 32, bias=with_bias).requires_grad_(False)
    block = torch.randn(1, rows, 48)
    found = layout(layer.weight, layer.bias)(block)
    torch.testing.assert_close(found, layer(block), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [1, 9, 10, 11, 40])
@pytest.mark.parametrize("pieces", [1, 3])
def test_a_widened_product_is_rounded_once(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, rows: int, pieces: int
) -> None:
    torch.manual_seed(rows)
    monkeypatch.setattr(packed_linear, "_PIECE", 48 * 32 // pieces)
    layer = torch.nn.Linear(48, 32).to(dtype).requires_grad_(False)
    block = torch.randn(1, rows, 48, dtype=dtype)
    found = widened(layer.weight, layer.bias)(block)
    exact = torch.nn.functional.linear(block.double(), layer.weight.double(), layer.bias.double())
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-3)


@pytest.mark.parametrize("layout", [pytest.param(packed, marks=needs_packed), widened])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_a_model_decodes_the_same_and_keeps_no_second_copy(
    monkeypatch: pytest.MonkeyPatch, layout: Layout, family: str, tied: bool
) -> None:
    model = tiny_model(family, tie_word_embeddings=tied)
    target = TransformersTarget(StockNetwork(model), 2048)
    decoded = run(target, PROMPT, NoDraft(), 16).output
    vectors = model.get_input_embeddings().weight.clone()
    monkeypatch.setattr(packed_linear, "fastest_layout", lambda weight: layout)
    assert pack_linears(model)
    assert run(target, PROMPT, NoDraft(), 16).output == decoded
    linears = [module for module in model.modules() if type(module) is torch.nn.Linear]
    assert linears
    assert all(layer.weight.numel() == 0 for layer in linears)
    assert torch.equal(model.get_input_embeddings().weight, vectors)


@pytest.mark.parametrize("error", [RuntimeError, AttributeError])
def test_without_a_packed_product_the_model_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def missing(weight: torch.Tensor, rows: int) -> torch.Tensor:
        raise error("no such operator")

    monkeypatch.setattr(torch.ops.mkldnn, "_reorder_linear_weight", missing, raising=False)
    model = tiny_model("llama")
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert not pack_linears(model)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("fastest", [plain, packed, widened])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_the_layout_that_measured_fastest_is_taken(
    monkeypatch: pytest.MonkeyPatch, fastest: Layout, dtype: torch.dtype
) -> None:
    fastest_is(monkeypatch, fastest)
    nothing_to_widen = dtype == torch.float32 and fastest is widened
    expected = plain if nothing_to_widen else fastest
    assert fastest_layout(torch.ones(4, 4, dtype=dtype)) is expected


def test_a_product_is_measured_before_it_is_made() -> None:
    weight, rows = torch.randn(32, 48), torch.randn(3, 48)
    torch.testing.assert_close(product(weight, None)(rows), rows @ weight.T, rtol=1e-5, atol=1e-5)


def test_weights_stay_as_they_are_where_that_is_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    fastest_is(monkeypatch, plain)
    model = tiny_model("llama")
    assert not pack_linears(model)
    assert model.lm_head.weight.numel() > 0


def test_on_another_device_nothing_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    fastest_is(monkeypatch, packed)
    model = tiny_model("llama").to("meta")
    assert not pack_linears(model)
    assert model.lm_head.weight.numel() > 0


def test_a_model_without_linear_layers_has_nothing_to_pack() -> None:
    assert not pack_linears(torch.nn.Sequential(torch.nn.Embedding(4, 4)))
