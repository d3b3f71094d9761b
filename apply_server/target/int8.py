"""Integer products, W8A8: a scale for each output channel, and one for each row.

Bytes are summed in int32, so a row's result doesn't depend on the block it stands in; the rest
of a pass keeps it so (lean.py). Must not know models, drafts or caches.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apply_server.errors import ModelUnavailable, Remedy
from apply_server.target.lean import Linear
from apply_server.target.packed_linear import Product

if TYPE_CHECKING:
    from torch import Tensor

# A row's largest activation becomes 127: with the unsigned operand's zero point of 128 that is all
# of a byte.
_ACTIVATION_MAX = 127
_ZERO_POINT = 128
# Weights use all of a byte where the processor multiplies bytes into 32 bits (VNNI). Older ones add
# pairs of products in 16 bits first, which saturates unless 2 · 255 · weight stays below 2^15.
_WEIGHT_MAXIMA = (127, 63)
# So few that a piece stays in the processor's cache through all that is done to it: four times as
# fast as 4096, and a vocabulary in float32 would be the largest thing in memory.
_QUANTISED_ROWS = 128
_TINY = 1e-30


@dataclass(frozen=True, slots=True)
class Int8Product:
    """An exact product, and the `largest` weight that it is exact with."""

    largest: int
    of: Callable[[Tensor, Tensor, Tensor | None], Product]


def int8_linear() -> Linear:
    """Makes products; weights are quantised when they are laid out.

    Raises ModelUnavailable where this processor has no exact int8 product.
    """
    found = int8_product()
    if found is None:
        raise ModelUnavailable(
            "There is no exact int8 product for this processor.",
            remedy=Remedy("dtype", ("auto",), "chooses another number type."),
        )
    return lambda weight, bias: found.of(*quantise_weight(weight, found.largest), bias)


def int8_product() -> Int8Product | None:
    """The best one here: torch's with weights of 8 bits, which needs VNNI; ours, which reads one
    row's weights at the memory's rate; torch's with 7 bits. The last two give the same bits.
    """
    from apply_server.kernels.processor import multiplies_bytes

    largest = weight_maximum()
    if largest != max(_WEIGHT_MAXIMA) and multiplies_bytes():
        from apply_server.kernels.byte_linear import byte_linear

        return Int8Product(min(_WEIGHT_MAXIMA), byte_linear)
    return None if largest is None else Int8Product(largest, fbgemm_linear)


def quantise_weight(weight: Tensor, largest: int) -> tuple[Tensor, Tensor]:
    """[out, in] → int8 of the same shape and a float32 scale for each output channel."""
    import torch

    quantised = torch.empty(weight.shape, dtype=torch.int8)
    scale = torch.empty(len(weight))
    parts = (each.split(_QUANTISED_ROWS) for each in (weight, quantised, scale))
    for piece, rounded, unit in zip(*parts, strict=True):
        numbers = piece.float()
        torch.div(numbers.abs().amax(1).clamp_min_(_TINY), largest, out=unit)
        rounded.copy_((numbers / unit[:, None]).round_())
    return quantised, scale


def fbgemm_linear(weight: Tensor, scale: Tensor, bias: Tensor | None) -> Product:
    """Rows times a quantised weight: int32 sums, scaled by row and channel in float32."""
    import torch

    packed = _pack(weight, scale)
    multiply = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32

    def product(rows: Tensor) -> Tensor:
        unit = rows.abs().amax(-1, keepdim=True).clamp_min_(_TINY).div_(_ACTIVATION_MAX)
        result: Tensor = multiply((rows / unit).round_(), 1.0, _ZERO_POINT, packed).mul_(unit)
        return result if bias is None else result.add_(bias)

    return product


def weight_maximum() -> int | None:
    """The largest weight with which torch's product is exact here; None if there is no such one.

    Found by multiplying what saturates first: rows and channels full of the largest numbers.
    """
    import torch

    try:
        _use_fbgemm()
    except RuntimeError:
        return None
    for largest in _WEIGHT_MAXIMA:
        weight = torch.full((16, 64), largest, dtype=torch.int8)
        weight[1::2] = -largest
        rows = torch.full((16, 64), float(_ACTIVATION_MAX))
        try:
            product = fbgemm_linear(weight, torch.ones(16), None)
        except (RuntimeError, AttributeError, NotImplementedError):
            return None
        if torch.equal(product(rows), rows @ weight.float().T):
            return largest
    return None


def _pack(weight: Tensor, scale: Tensor) -> object:
    import torch

    zeros = torch.zeros(len(scale), dtype=torch.long)
    quantised = torch._make_per_channel_quantized_tensor(weight, scale.double(), zeros, 0)
    packed: object = torch.ops.quantized.linear_prepack(quantised, None)
    return packed


def _use_fbgemm() -> None:
    """The backend is a setting of the whole process. FBGEMM's layout is read at the memory's own
    rate for one row (20 GB/s where oneDNN's byte product reads 4), and it is as fast for many.
    Raises RuntimeError where this build hasn't got it.
    """
    import torch

    torch.backends.quantized.engine = "fbgemm"
    # Torch means to drop its quantized tensors; where it has, `weight_maximum` is None.
    warnings.filterwarnings("ignore", "torch.quantize_per_tensor", UserWarning)
