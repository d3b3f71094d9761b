"""Packed products against plain ones, and when weights are packed at all."""

from __future__ import annotations

import pytest
import torch

from apply_server.decode.draft import NoDraft
from apply_server.target import packed_linear
from apply_server.target.packed_linear import Product, pack_linears, packed_product
from apply_server.target.transformers_model import StockNetwork, TransformersTarget
from tests.conftest import tiny_model
from tests.decode.running import run

PROMPT = [5, 9, 2, 40, 17]


def has_packed_products() -> bool:
    try:
        packed_product(torch.ones(16, 16), None)(torch.ones(2, 16))
    except (RuntimeError, AttributeError):
        return False
    return True


needs_packed = pytest.mark.skipif(not has_packed_products(), reason="no packed product here")


@pytest.fixture
def pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the clock says: what is measured depends on who else uses the machine."""
    monkeypatch.setattr(packed_linear, "_pays", lambda weight: True)


@needs_packed
@pytest.mark.parametrize("rows", [1, 2, 16, 64, 200])
@pytest.mark.parametrize("with_bias", [True, False])
def test_a_packed_product_is_the_plain_one(rows: int, with_bias: bool) -> None:
    torch.manual_seed(rows)
    layer = torch.nn.Linear(48, 32, bias=with_bias)
    block = torch.randn(1, rows, 48)
    packed = packed_product(layer.weight, layer.bias)
    torch.testing.assert_close(packed(block), layer(block), rtol=1e-5, atol=1e-5)


@needs_packed
@pytest.mark.usefixtures("pays")
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_a_packed_model_decodes_the_same_and_keeps_no_second_copy(family: str, tied: bool) -> None:
    model = tiny_model(family, tie_word_embeddings=tied)
    target = TransformersTarget(StockNetwork(model), 2048)
    plain = run(target, PROMPT, NoDraft(), 16).output
    vectors = model.get_input_embeddings().weight.clone()
    assert pack_linears(model)
    assert run(target, PROMPT, NoDraft(), 16).output == plain
    linears = [module for module in model.modules() if type(module) is torch.nn.Linear]
    assert linears
    assert all(layer.weight.numel() == 0 for layer in linears)
    assert torch.equal(model.get_input_embeddings().weight, vectors)


@pytest.mark.parametrize("error", [RuntimeError, AttributeError])
def test_without_a_packed_product_the_model_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def missing(weight: torch.Tensor, bias: torch.Tensor | None) -> Product:
        raise error("no such operator")

    monkeypatch.setattr(packed_linear, "packed_product", missing)
    model = tiny_model("llama")
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert not pack_linears(model)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())


@needs_packed
@pytest.mark.parametrize(("packed_s", "plain_s", "pays"), [(1.0, 2.0, True), (2.0, 1.0, False)])
def test_weights_are_packed_only_where_that_was_faster(
    monkeypatch: pytest.MonkeyPatch, packed_s: float, plain_s: float, pays: bool
) -> None:
    timings = iter([packed_s, plain_s])
    monkeypatch.setattr(packed_linear, "fastest", lambda product, rows: next(timings))
    assert pack_linears(tiny_model("llama")) is pays


@pytest.mark.usefixtures("pays")
def test_on_another_device_nothing_is_packed() -> None:
    model = tiny_model("llama").to("meta")
    assert not pack_linears(model)
    assert model.lm_head.weight.numel() > 0


@pytest.mark.usefixtures("pays")
def test_a_model_without_linear_layers_has_nothing_to_pack() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(4, 4))
    model.device = torch.device("cpu")
    assert not pack_linears(model)
