"""Rows times a weight of bytes: whole numbers in between, so no sum is rounded.

For processors that multiply bytes (AVX2 and later); processor.py tells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from apply_server.kernels.functions import larger
from apply_server.kernels.linear import pack
from apply_server.kernels.memory import Array, floats, octets
from apply_server.kernels.microkernel import (
    INPUTS,
    INT8,
    INT8_SCALED,
    LANES,
    NUMBER_BYTES,
    PANEL,
    PANELS,
    multiply,
)
from apply_server.kernels.processor import processor
from apply_server.kernels.team import Kernel, compiled, ticket, word

if TYPE_CHECKING:
    from torch import Tensor

_QUAD = INPUTS[INT8]
# Inputs at a time: so much of a few rows and panels stays in the nearest caches.
_INPUTS = 2048 if LANES < PANEL else 768
# Rows of a unit of work that quantises.
_ROWS = 8
# A row's largest number becomes 127; unsigned, zero is 128.
_LARGEST, _ZERO = np.float32(127.0), np.float32(128.0)
_TINY = np.float32(1e-30)

# Where bytes are added in pairs of 16 bits these saturate unless 2 · 255 · weight stays below 2^15.
LARGEST_WEIGHT = 127 if processor().bytes_exactly else 63
"""Of a quantised weight."""


@njit(cache=True, error_model="numpy")
def _quantise_row(row: Array, out: Array) -> np.float32:
    """Into unsigned bytes; returns what one stands for."""
    largest = _TINY
    for at in range(len(row)):
        largest = larger(largest, abs(row[at]))
    unit = largest / _LARGEST
    for at in range(len(row)):
        out[at] = np.uint8(np.int32(np.rint(row[at] / unit) + _ZERO))
    return unit


@compiled
def _quantise(arguments: int) -> None:
    units, rows, width, padded = (
        word(arguments, 1), word(arguments, 2), word(arguments, 3), word(arguments, 4)
    )  # fmt: skip
    x, out, scales = word(arguments, 5), word(arguments, 6), floats(word(arguments, 7), rows)
    unit = ticket(arguments)
    while unit < units:
        for row in range(unit * _ROWS, min(rows, (unit + 1) * _ROWS)):
            given = floats(x + 4 * width * row, width)
            scales[row] = _quantise_row(given, octets(out + padded * row, padded))
        unit = ticket(arguments)


@njit(cache=True)
def _block(kind: int, arguments: int, unit: int, begin: int) -> None:
    """A unit's products of some inputs from `begin` on, added to those of the inputs before."""
    rows, width, panels = word(arguments, 2), word(arguments, 3), word(arguments, 4)
    x, w, out, by_row = (
        word(arguments, 5), word(arguments, 6), word(arguments, 7), word(arguments, 8)
    )  # fmt: skip
    starts, scales = word(arguments, 9), word(arguments, 10)
    first = unit * PANELS
    panel_bytes = NUMBER_BYTES * PANEL
    place, out_row = panel_bytes * first, panel_bytes * panels
    start, start_row = (starts, 0) if begin == 0 else (out, out_row)
    multiply(
        kind, True, rows, min(PANELS, panels - first),
        x + begin, width, NUMBER_BYTES,
        w + (first * width + begin) * PANEL, panel_bytes, width * PANEL,
        start + place, start_row, out + place, out_row, panel_bytes,
        min(_INPUTS, width - begin) // _QUAD,
        by_row, scales + 2 * place,
    )  # fmt: skip


@compiled
def _product(arguments: int) -> None:
    units, width = word(arguments, 1), word(arguments, 3)
    last = (width - 1) // _INPUTS * _INPUTS
    unit = ticket(arguments)
    while unit < units:
        for begin in range(0, last, _INPUTS):
            _block(INT8, arguments, unit, begin)
        _block(INT8_SCALED, arguments, unit, last)
        unit = ticket(arguments)


_run_quantise, _run_product = Kernel(_quantise), Kernel(_product)


def byte_linear(weight: Tensor, scale: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """The product with `weight`, int8 [out, in] up to LARGEST_WEIGHT in units of `scale` [out],
    and `bias` [out]: float32 [rows, in] → [rows, out]. Rows are rounded to bytes, each in its own
    unit.
    """
    import torch

    columns, inputs = weight.shape
    padded = torch.nn.functional.pad(weight, (0, -inputs % _QUAD, 0, -columns % PANEL))
    channels, width = padded.shape
    panels = channels // PANEL
    units, packed = -(-panels // PANELS), pack(padded, _QUAD)
    starts = padded.sum(1, dtype=torch.int32).mul_(-int(_ZERO))  # takes the zero point out again
    scales = torch.zeros(2, channels)
    scales[0, :columns] = scale
    if bias is not None:
        scales[1, :columns] = bias
    by_panel = scales.view(2, panels, PANEL).transpose(0, 1).contiguous()

    def product(rows: Tensor) -> Tensor:
        given, count = rows.contiguous(), len(rows)
        whole = torch.empty(count, width, dtype=torch.uint8)
        by_row, out = given.new_empty(count), given.new_empty(count, channels)
        _run_quantise(
            -(-count // _ROWS), count, inputs, width,
            given.data_ptr(), whole.data_ptr(), by_row.data_ptr(),
        )  # fmt: skip
        _run_product(
            units, count, width, panels, whole.data_ptr(), packed.data_ptr(), out.data_ptr(),
            by_row.data_ptr(), starts.data_ptr(), by_panel.data_ptr(),
        )  # fmt: skip
        return out[:, :columns].contiguous()

    return product
