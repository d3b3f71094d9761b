"""Integer arithmetic for a whole pass: W8A8 products, and everything else made row-invariant.

A row's result doesn't depend on the block it stands in, bit for bit, so a draft verified in one
block gives the very tokens that decoding one at a time gives; no near-tie can flip. Wherever
numbers are summed (products, norms, attention) they are rounded to a grid first, coarse enough that
the sum is exact in its accumulator; an exact sum doesn't depend on its order. Elementwise
operations round each result alone. Must not know models, drafts or caches.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

from apply_server.errors import ModelUnavailable, Remedy
from apply_server.target.attention import attend, hide
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

# Summands are whole numbers, so small that every sum fits float64's 53 bits.
_UNIT = 2.0**-12  # of queries, keys and values
_LARGEST = 2.0**23 - 1  # of two multiplied: 46 bits, and 7 for a head of 128
_SHARES = 2.0**18  # the largest of a row's shares, times values, times _KEYS: 52 bits
_KEYS = 2**11  # at a time
_SQUARES = 2.0**38  # the largest of a row's squares, of which there are at most 2^15
_TINY = 1e-30
_SCORES = 2**21  # at a time
_FEW_ROWS = 12
# So few that a piece stays in the processor's cache through all that is done to it: four times as
# fast as 4096, and a vocabulary in float32 would be the largest thing in memory.
_QUANTISED_ROWS = 128


class Int8Arithmetic:
    """Weights with a scale for each output channel, activations with one for each row."""

    def __init__(self) -> None:
        """Raises ModelUnavailable where this processor has no exact int8 product."""
        import torch

        self.name = "int8"
        self.tolerance = 0.0
        self.activations = torch.float32
        maximum = weight_maximum()
        if maximum is None:
            raise ModelUnavailable(
                "This build of torch has no exact int8 product for this processor.",
                remedy=Remedy("dtype", ("auto",), "chooses another number type."),
            )
        self.weight_max = maximum

    def linear(self, weight: Tensor, bias: Tensor | None) -> Product:
        """Quantise and pack."""
        return int8_product(*quantise_weight(weight, self.weight_max), bias)

    def norm(self, rows: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """With an exact sum of squares, relative to the row's largest number."""

        exact = rows.double()
        unit = _largest(rows).double().mul_(_SQUARES**-0.5)
        squares = (exact / unit).square_().round_()
        mean = squares.mean(-1, keepdim=True).mul_(unit.square_())
        return exact.div_(mean.add_(epsilon).sqrt_()).float().mul_(weight)

    def gate(self, rows: Tensor) -> Tensor:
        """By `exp`, which gives a number the same bits wherever it stands; torch's fused SiLU has
        one exponential for whole vectors and another for what is left over.
        """
        gate, value = rows.chunk(2, dim=-1)
        return gate / gate.neg().exp_().add_(1.0) * value

    def settled(self, heads: Tensor) -> Tensor:
        """In whole units, which float32 holds exactly: half of float64 to keep, and to read."""
        return heads.mul_(1.0 / _UNIT).clamp_(-_LARGEST, _LARGEST).round_()

    def attend(
        self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float
    ) -> Tensor:
        """Both products exact, and the sum between them; a few rows at a time, as what is between
        the products should stay in the processor's cache.
        """
        import torch

        pieces = -(-query.shape[:2].numel() * keys.shape[1] // _SCORES)
        parts = zip(query.double().chunk(pieces, dim=1), mask.chunk(pieces), strict=True)
        exact = keys.double(), values.double()
        return torch.cat([_attend(part, *exact, seen, scale) for part, seen in parts], dim=1)

    def attend_prompt(
        self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float
    ) -> Tensor:
        """In float32: twice as fast as float64, and without the steps that make sums exact."""
        return attend(query, keys, values, mask, scale * _UNIT**2).mul_(_UNIT)


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


def int8_product(weight: Tensor, scale: Tensor, bias: Tensor | None) -> Product:
    """Rows times a quantised weight: int32 sums, scaled by row and channel in float32."""
    import torch

    packed = _pack(weight, scale)
    multiply = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32

    def product(rows: Tensor) -> Tensor:
        unit = _largest(rows).div_(_ACTIVATION_MAX)
        result: Tensor = multiply((rows / unit).round_(), 1.0, _ZERO_POINT, packed).mul_(unit)
        return result if bias is None else result.add_(bias)

    return product


def _largest(rows: Tensor) -> Tensor:
    """Of each row's magnitudes [n, 1]: torch's norm of infinity takes five times as long."""
    return rows.abs().amax(-1, keepdim=True).clamp_min_(_TINY)


def weight_maximum() -> int | None:
    """The largest weight with which the product is exact here; None if there is no such product.

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
            product = int8_product(weight, torch.ones(16), None)
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


def _attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float) -> Tensor:
    stacked = query.reshape(len(keys), -1, query.shape[-1])  # [kv_heads, group * n, dim]
    exact = stacked @ keys.transpose(1, 2)
    scores = exact.float().mul_(scale * _UNIT**2)
    hide(scores, mask)
    shares = exact.copy_(_shares(scores))  # memory that is new is slow
    mixed = _mixed(shares, values).div(shares.sum(-1, keepdim=True))
    return mixed.mul_(_UNIT).float().reshape(query.shape)


def _shares(scores: Tensor) -> Tensor:
    """What softmax divides by their sum, as whole numbers up to _SHARES; in place.

    They are whole before they are summed, so neither the keys' order nor those that a row doesn't
    see (which add zeros) change a bit.
    """
    largest = scores.amax(-1, keepdim=True)
    return scores.sub_(largest.sub_(math.log(_SHARES))).exp_().round_()


def _mixed(shares: Tensor, values: Tensor) -> Tensor:
    """Shares [kv_heads, n, m] times values [kv_heads, m, dim], summed exactly: whole numbers, in
    float64 over _KEYS keys and in int64 over more.
    """
    parts = zip(shares.split(_KEYS, dim=2), values.split(_KEYS, dim=1), strict=True)
    first, *rest = (_product(some, those).long() for some, those in parts)
    return sum(rest, first)


def _product(shares: Tensor, values: Tensor) -> Tensor:
    """Nothing is rounded, so the layout is free: MKL takes 11 ms for 768 rows and 1,152 keys in the
    plain one and 8 in the other, but for 6 rows 0.2 and 1.6.
    """
    if shares.shape[1] < _FEW_ROWS:
        return shares @ values
    return (values.transpose(1, 2) @ shares.transpose(1, 2)).transpose(1, 2)
