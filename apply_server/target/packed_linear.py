"""Linear layers with weights laid out once for oneDNN: the same products, several times as fast.

A block of a few rows is where a draft is verified, and where the stock CPU product is worst (on an
AVX2 processor MKL takes four times a one-row pass for eight rows, oneDNN less than two). Must not
know models beyond their `nn.Linear` modules.

In bfloat16, AVX2 has no packed product, and torch's takes as long for each row of a block as for
one alone. Multiplying many rows in float32, with the weights widened a piece at a time, made
prefill 2.6 times as fast and 32 rows 1.8 times, but was dropped: one number in 5,000 is rounded
otherwise than by the one-row product, which moved SmolLM2's logits by up to 0.75 in text (0.38
where the products are the same) and by 9 behind special tokens, so that hardly a choice was clear.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_PROBE_ROWS = 16
_PROBE_RUNS = 5
# The block size that the layout is chosen for; others read the same layout.
_LAYOUT_ROWS = 64

Product = Callable[["Tensor"], "Tensor"]
"""[..., in] → [..., out]."""


def product(weight: Tensor, bias: Tensor | None) -> Product:
    """[rows, in] → [rows, out] with `weight` [out, in], packed where that measures faster."""
    import torch

    if weight.device.type == "cpu" and _pays(weight):
        return _product(_pack(weight), bias)
    return lambda rows: torch.nn.functional.linear(rows, weight, bias)


def pack_linears(model: Any) -> bool:
    """Replace every linear layer's product by a packed one, where that is measured to be faster.

    The plain weights are freed (tied embeddings keep theirs), so memory stays what it was. Returns
    whether anything was packed: not on GPUs, nor where the processor or type has no packed product.
    """
    import torch

    layers = [module for module in model.modules() if type(module) is torch.nn.Linear]
    if model.device.type != "cpu" or not layers or not _pays(layers[0].weight):
        return False
    for layer in layers:
        layer.forward = _product(_pack(layer.weight), layer.bias)
        layer.weight = torch.nn.Parameter(layer.weight.new_empty(0), requires_grad=False)
    return True


def _pays(weight: Tensor) -> bool:
    """Time both products on a short block; fastest run of several, as others use the machine."""
    import torch

    try:
        packed = _product(_pack(weight), None)
        rows = weight.new_ones((_PROBE_ROWS, weight.shape[1]))
        packed(rows)
    except (RuntimeError, AttributeError):
        return False
    return _fastest(packed, rows) < _fastest(
        lambda block: torch.nn.functional.linear(block, weight), rows
    )


def _fastest(product: Callable[[Tensor], Tensor], rows: Tensor) -> float:
    seconds = []
    for _ in range(_PROBE_RUNS):
        started = time.perf_counter()
        product(rows)
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _pack(weight: Tensor) -> Tensor:
    import torch

    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _LAYOUT_ROWS)
    return packed


def _product(packed: Tensor, bias: Tensor | None) -> Product:
    import torch

    linear: Callable[..., Tensor] = torch.ops.mkldnn._linear_pointwise
    return lambda rows: linear(rows, packed, bias, "none", [], "")
