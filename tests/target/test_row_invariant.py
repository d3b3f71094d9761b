"""Which product is taken: one that gives a row the same bits in every block, or none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from apply_server.target import row_invariant as module
from apply_server.target.packed_linear import Linear, Product
from apply_server.target.row_invariant import row_invariant

TYPES = [torch.float32, torch.bfloat16, torch.float16]
WIDTH, CHANNELS = 96, 80


def found(dtype: torch.dtype) -> Linear:
    linear = row_invariant(dtype, {WIDTH, 32})
    if linear is None:
        pytest.skip(f"no row-invariant {dtype} product here")
    return linear


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def exact(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return rows.double() @ weight.double().T


@pytest.mark.parametrize("dtype", TYPES)
def test_a_row_is_the_same_bits_in_every_block(dtype: torch.dtype) -> None:
    product = found(dtype)(numbers(CHANNELS, WIDTH), numbers(CHANNELS))
    rows = numbers(64, WIDTH, seed=1)
    whole = product(rows)
    assert whole.dtype == torch.float32
    for count in range(1, 65):
        assert torch.equal(product(rows[:count]), whole[:count]), count
        assert torch.equal(product(rows[-count:]), whole[-count:]), count


@pytest.mark.parametrize("dtype", TYPES)
def test_it_is_the_product_with_the_rounded_weight_and_the_bias(dtype: torch.dtype) -> None:
    weight, bias, rows = numbers(CHANNELS, WIDTH), numbers(CHANNELS, seed=2), numbers(5, WIDTH)
    expected = exact(rows, weight.to(dtype)) + bias.to(dtype)
    error = found(dtype)(weight, bias)(rows) - expected
    assert error.abs().max() < 4 * torch.finfo(dtype).eps * expected.abs().max()


def works(way: Linear) -> Linear:
    if not module._is_invariant(way, [WIDTH]):
        pytest.skip("no such row-invariant product here")
    return way


def test_widening_gives_the_bits_of_the_packed_product_however_many_pieces_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weight, rows = numbers(CHANNELS, WIDTH).bfloat16(), numbers(5, WIDTH)
    expected = works(module._packed)(weight.float(), None)(rows)
    for piece in (7 * WIDTH, 40 * WIDTH, CHANNELS * WIDTH):
        monkeypatch.setattr(module, "_PIECE", piece)
        product = works(module._widened)(weight, None)
        assert torch.equal(product(rows), expected), piece
        assert torch.equal(product(rows[:1]), expected[:1]), piece


def way(result: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Linear:
    def linear(weight: torch.Tensor, bias: torch.Tensor | None) -> Product:
        return lambda rows: result(rows.float(), weight.float())

    return linear


def each_alone(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.cat([row @ weight.T for row in rows.split(1)])


def longer_blocks_otherwise(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return each_alone(rows, weight) * (1.0 if len(rows) < 100 else 1.0 + 2**-20)


def not_here(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("this processor can't")


@pytest.mark.parametrize("other", [longer_blocks_otherwise, not_here])
@pytest.mark.parametrize("dtype", TYPES)
def test_what_is_not_invariant_is_not_taken(
    other: Callable[..., torch.Tensor], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_plain", "_packed", "_widened"):
        monkeypatch.setattr(module, name, way(other))
    assert row_invariant(dtype, {WIDTH}) is None
    monkeypatch.setattr(module, "_widened", way(each_alone))
    linear = row_invariant(dtype, {WIDTH})
    assert linear is not None
    rows, weight = numbers(3, WIDTH), numbers(CHANNELS, WIDTH)
    assert torch.equal(linear(weight, None)(rows), each_alone(rows, weight.to(dtype).float()))


def test_of_those_that_are_the_fastest_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"_plain": 3.0, "_packed": 1.0, "_widened": 2.0}
    for at, name in enumerate(seconds):
        scaled = way(lambda rows, weight, by=float(at): each_alone(rows, weight) * by)
        monkeypatch.setattr(module, name, scaled)
    taken = iter(seconds.values())
    monkeypatch.setattr(module, "fastest", lambda product, rows: next(taken))
    linear = row_invariant(torch.float32, {WIDTH})
    assert linear is not None
    rows = torch.ones(1, WIDTH)
    assert torch.equal(linear(torch.ones(CHANNELS, WIDTH), None)(rows)[0, :1], rows[0, :1] * WIDTH)


def test_one_row_is_multiplied_by_the_kernel_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[int] = []

    def linear(rows: torch.Tensor, weight: torch.Tensor, *_: object) -> torch.Tensor:
        blocks.append(len(rows))
        return each_alone(rows, weight)

    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", linear)
    weight, rows = numbers(CHANNELS, WIDTH).bfloat16(), numbers(3, WIDTH)
    product = module._widened(weight, None)
    assert torch.equal(product(rows[:1]), product(rows)[:1])
    assert blocks == [2, 3]
