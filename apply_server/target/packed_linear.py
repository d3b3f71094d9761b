"""Linear layers with weights laid out once for oneDNN: the same products, several times as fast.

A block of a few rows is where a draft is verified, and where the stock CPU product is worst (on an
AVX2 processor MKL takes four times a one-row pass for eight rows, oneDNN less than two). Must not
know models beyond their `nn.Linear` modules.
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
        layer.forward = packed_product(layer.weight, layer.bias)
        layer.weight = torch.nn.Parameter(layer.weight.new_empty(0), requires_grad=False)
    return True


def _pays(weight: Tensor) -> bool:
    """Time both products on a short block."""
    import torch

    try:
        packed = packed_product(weight, None)
        rows = weight.new_ones((_PROBE_ROWS, weight.shape[1]))
        packed(rows)
    except (RuntimeError, AttributeError):
        return False
    return fastest(packed, rows) < fastest(
        lambda block: torch.nn.functional.linear(block, weight), rows
    )


def fastest(product: Product, rows: Tensor) -> float:
    """Seconds of the fastest run of several, as others use the machine."""
    seconds = []
    for _ in range(_PROBE_RUNS):
        started = time.perf_counter()
        product(rows)
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def packed_product(weight: Tensor, bias: Tensor | None) -> Product:
    """Always packed. Raises RuntimeError or AttributeError where oneDNN can't: no such operator, or
    no such product of this type on this processor.
    """
    import torch

    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _LAYOUT_ROWS)
    linear: Callable[..., Tensor] = torch.ops.mkldnn._linear_pointwise
    return lambda rows: linear(rows, packed, bias, "none", [], "")
