"""Integer products, W8A8: a scale for each output channel, and one for each row.

Bytes are summed in int32, so a row's result doesn't depend on the block it stands in; the rest
of a pass keeps it so (lean.py). Must not know models, drafts or caches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apply_server.errors import ModelUnavailable, Remedy
from apply_server.target.lean import Linear

if TYPE_CHECKING:
    from torch import Tensor

# So few that a piece stays in the processor's cache through all that is done to it: four times as
# fast as 4096, and a vocabulary in float32 would be the largest thing in memory.
_QUANTISED_ROWS = 128
_TINY = 1e-30


def has_int8() -> bool:
    """Whether this processor multiplies bytes."""
    from apply_server.kernels.processor import processor

    return processor().multiplies_bytes


def int8_linear() -> Linear:
    """Makes products; weights are quantised when they are laid out.

    Raises ModelUnavailable where there are none.
    """
    if not has_int8():
        raise ModelUnavailable(
            "There is no exact int8 product for this processor.",
            remedy=Remedy("dtype", ("auto",), "chooses another number type."),
        )
    from apply_server.kernels.byte_linear import LARGEST_WEIGHT, byte_linear

    return lambda weight, bias: byte_linear(*quantise_weight(weight, LARGEST_WEIGHT), bias)


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
