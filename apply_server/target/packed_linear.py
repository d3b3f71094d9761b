"""Linear layers in the layout that is fastest here: the same products, several times as fast.

A block of a few rows is where a draft is verified, and where the stock CPU product is worst: on an
AVX2 processor MKL takes four times a one-row pass for eight rows in float32, oneDNN less than two;
and a bfloat16 product takes as long for each row of a block as for one alone. Must not know models
beyond their `nn.Linear` modules.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_PROBE_ROWS = 16
_PROBE_RUNS = 5
# The block size that the packed layout is chosen for; others read the same layout.
_LAYOUT_ROWS = 64
# Weights that are widened at a time: 512 KB in float32, which stay in the processor's cache.
_PIECE = 2**17
# Fewer rows take less time than widening the weights does.
_MANY_ROWS = 10

Product = Callable[["Tensor"], "Tensor"]
"""[..., in] → [..., out]."""
Layout = Callable[["Tensor", "Tensor | None"], Product]
"""Weight [out, in] and bias [out] → their product."""


def product(weight: Tensor, bias: Tensor | None) -> Product:
    """[rows, in] → [rows, out] with `weight` [out, in], in the layout that measures fastest."""
    return fastest_layout(weight)(weight, bias)


def pack_linears(model: Any) -> bool:
    """Replace every linear layer's product by that of the layout that measures fastest.

    A packed layer's plain weights are freed (tied embeddings keep theirs), so memory stays what it
    was. Returns whether anything was replaced: not on GPUs, nor where the plain product is fastest.
    """
    import torch

    layers = [module for module in model.modules() if type(module) is torch.nn.Linear]
    layout = fastest_layout(layers[0].weight) if layers else plain
    if layout is plain:
        return False
    for layer in layers:
        layer.forward = layout(layer.weight.detach(), layer.bias)
        layer.weight = torch.nn.Parameter(layer.weight.new_empty(0), requires_grad=False)
    return True


def fastest_layout(weight: Tensor) -> Layout:
    """By the time of a short block with this weight; the plain one on GPUs."""
    if weight.device.type != "cpu":
        return plain
    layouts = (plain, packed) if weight.itemsize == 4 else (plain, packed, widened)
    return min(layouts, key=lambda layout: _seconds(layout, weight))


def plain(weight: Tensor, bias: Tensor | None) -> Product:
    """Torch's own."""
    import torch

    return lambda rows: torch.nn.functional.linear(rows, weight, bias)


def packed(weight: Tensor, bias: Tensor | None) -> Product:
    """Laid out once for oneDNN. Raises RuntimeError or AttributeError where it can't be."""
    import torch

    laid_out = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _LAYOUT_ROWS)
    linear: Callable[..., Tensor] = torch.ops.mkldnn._linear_pointwise
    return lambda rows: linear(rows, laid_out, bias, "none", [], "")


def widened(weight: Tensor, bias: Tensor | None) -> Product:
    """For short types that the processor doesn't multiply: many rows in float32, the weights
    converted a piece at a time, so that they take no more memory.

    On two AVX2 cores, 17,920 × 1,536 in bfloat16 takes torch 4 ms for one row and 95 for 32; so it
    takes 30.
    """
    import torch

    most = max(1, _PIECE // weight.shape[1])

    def product(rows: Tensor) -> Tensor:
        if rows.shape[:-1].numel() < _MANY_ROWS:
            return torch.nn.functional.linear(rows, weight, bias)
        wide = rows.reshape(-1, weight.shape[1]).float()
        room = wide.new_empty((most, weight.shape[1]))
        result = wide.new_empty((len(wide), len(weight)))
        for piece, columns in zip(weight.split(most), result.split(most, dim=1), strict=True):
            torch.mm(wide, room[: len(piece)].copy_(piece).T, out=columns)
        if bias is not None:
            result += bias
        return result.to(rows.dtype).view(*rows.shape[:-1], -1)

    return product


def _seconds(layout: Layout, weight: Tensor) -> float:
    """Of the fastest run of several, as others use the machine; infinite where there is none."""
    try:
        product = layout(weight, None)
        rows = weight.new_ones((_PROBE_ROWS, weight.shape[1]))
        product(rows)
    except (RuntimeError, AttributeError):
        return math.inf
    seconds = []
    for _ in range(_PROBE_RUNS):
        started = time.perf_counter()
        product(rows)
        seconds.append(time.perf_counter() - started)
    return min(seconds)
