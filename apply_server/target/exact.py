"""Arithmetic in which no row depends on the block it stands in, bit for bit.

So a draft verified in one block gives the very tokens that decoding one at a time gives, and no
near-tie can flip. Wherever numbers are summed (products, norms, attention) they are rounded to a
grid first, coarse enough that the sum is exact in its accumulator; an exact sum doesn't depend on
its order. Elementwise operations round each result alone. The products with weights come from
int8.py, whose sums are exact as well, or from row_invariant.py, which sum each row in the same
order in every block. Must not know models, drafts or caches.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from apply_server.target.attention import attend, hide
from apply_server.target.packed_linear import Linear

if TYPE_CHECKING:
    from torch import Tensor

# Summands are whole numbers, so small that every sum fits float64's 53 bits.
_UNIT = 2.0**-12  # of queries, keys and values
_LARGEST = 2.0**23 - 1  # of two multiplied: 46 bits, and 7 for a head of 128
_SHARES = 2.0**18  # the largest of a row's shares, times values, times _KEYS: 52 bits
_KEYS = 2**11  # at a time
_SQUARES = 2.0**38  # the largest of a row's squares, of which there are at most 2^15
_TINY = 1e-30
_SCORES = 2**21  # at a time
_FEW_ROWS = 12


class ExactArithmetic:
    """See Arithmetic (arithmetic.py). `linear` makes products from float32 to float32 that give a
    row the same bits in every block; all else does so by construction.
    """

    def __init__(self, name: str, linear: Linear) -> None:
        import torch

        self.name = name
        self.tolerance = 0.0
        self.activations = torch.float32
        self.linear = linear

    def norm(self, rows: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """With an exact sum of squares, relative to the row's largest number."""

        exact = rows.double()
        unit = largest_of(rows).double().mul_(_SQUARES**-0.5)
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


def largest_of(rows: Tensor) -> Tensor:
    """Of each row's magnitudes [n, 1]: torch's norm of infinity takes five times as long."""
    return rows.abs().amax(-1, keepdim=True).clamp_min_(_TINY)


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
