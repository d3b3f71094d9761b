"""Products with float weights in which a row's bits don't depend on the block it stands in.

Whether a product is one hangs on processor, number type and build: it is tried. On an AVX2
processor (torch 2.13) MKL's float32 product is none, oneDNN's with packed weights is, and torch's
own bfloat16 one is, but takes as long for each row of a block as for one alone. So weights of 16
bits are widened there, a piece at a time, for oneDNN's float32 product: 32 rows in a quarter of
the time, one row in twice. FBGEMM's product with float16 weights reads half of float32's bytes for
one row, but is none. Must not know models or drafts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from apply_server.target.packed_linear import Linear, Product, fastest, packed_product

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# Blocks that rows are looked at in: products choose their ways by such sizes, and do what is left
# over of an odd one differently. In so many channels even a rare difference in rounding is found.
_BLOCKS = (2, 3, 8, 17, 33, 64, 129)
_CHANNELS = 2048
# The block size that the fastest is chosen for: few are as short as one row, and plain decoding's
# passes are not what drafts are verified in.
_TIMED_ROWS = 16
# Numbers that are widened at a time: 8 MB, which many processors' caches hold, and so many that
# the calls themselves cost little (at 2^17 one row takes four times as long).
_PIECE = 2**21


def row_invariant(dtype: torch.dtype, widths: Iterable[int]) -> Linear | None:
    """The fastest product here for weights of this type and these input widths that gives a row
    the same bits in every block, from float32 to float32. None if there is no such product.
    """
    sizes = sorted(widths)
    ways = [_of_type(dtype, way) for way in (_plain, _packed, _widened)]
    found = [way for way in ways if _is_invariant(way, sizes)]
    return min(found, key=lambda way: _seconds(way, sizes[-1]), default=None)


def _of_type(dtype: torch.dtype, way: Linear) -> Linear:
    return lambda weight, bias: way(weight.to(dtype), bias)


def _plain(weight: Tensor, bias: Tensor | None) -> Product:
    import torch

    def product(rows: Tensor) -> Tensor:
        return torch.nn.functional.linear(rows.to(weight.dtype), weight).float()

    return _with_bias(product, bias)


def _packed(weight: Tensor, bias: Tensor | None) -> Product:
    multiply = packed_product(weight, None)
    return _with_bias(lambda rows: multiply(rows.to(weight.dtype)).float(), bias)


def _widened(weight: Tensor, bias: Tensor | None) -> Product:
    """In oneDNN's plain layout, where one row is another kernel's business than two."""
    import torch

    pieces = weight.chunk(-(-weight.numel() // _PIECE))
    linear = torch.ops.mkldnn._linear_pointwise

    def product(rows: Tensor) -> Tensor:
        several = rows if len(rows) > 1 else rows.expand(2, -1)
        room = several.new_empty(pieces[0].shape)
        parts = [
            linear(several, room[: len(piece)].copy_(piece), None, "none", [], "")
            for piece in pieces
        ]
        return torch.cat(parts, dim=1)[: len(rows)]

    return _with_bias(product, bias)


def _with_bias(product: Product, bias: Tensor | None) -> Product:
    if bias is None:
        return product
    added = bias.float()
    return lambda rows: product(rows).add_(added)


def _is_invariant(way: Linear, widths: Iterable[int]) -> bool:
    try:
        return all(_same_bits(way, width) for width in widths)
    except (RuntimeError, AttributeError):  # this build or processor can't
        return False


def _same_bits(way: Linear, width: int) -> bool:
    import torch

    multiply, rows = way(_random(_CHANNELS, width), None), _random(max(_BLOCKS), width)
    alone = {row: multiply(rows[row : row + 1])[0] for row in (0, *(n - 1 for n in _BLOCKS))}
    blocks = [multiply(rows[:count]) for count in _BLOCKS]
    return all(
        torch.equal(row, block[at])
        for block in blocks
        for at, row in alone.items()
        if at < len(block)
    )


def _seconds(way: Linear, width: int) -> float:
    return fastest(way(_random(_CHANNELS, width), None), _random(_TIMED_ROWS, width))


def _random(rows: int, width: int) -> Tensor:
    import torch

    return torch.randn(rows, width, generator=torch.Generator().manual_seed(width))
