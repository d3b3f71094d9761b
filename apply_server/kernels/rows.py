"""What is computed of each row by itself: norms and gates.

A row goes through the same loop whatever rows stand beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from apply_server.kernels.functions import exponential
from apply_server.kernels.memory import Array, floats
from apply_server.kernels.team import Kernel, compiled, number, ticket, word

if TYPE_CHECKING:
    from torch import Tensor

# Rows of a unit of work: of so few the start of a second thread takes longer than they do.
_ROWS = 8
_ONE = np.float32(1.0)


# Within a row sums may be split into vectors, as that is decided once, when this is compiled.
@njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _norm_row(row: Array, weight: Array, out: Array, epsilon: float) -> None:
    total = np.float32(0.0)
    for at in range(len(weight)):
        total += row[at] * row[at]
    factor = _ONE / np.sqrt(total / np.float32(len(weight)) + epsilon)
    for at in range(len(weight)):
        out[at] = row[at] * factor * weight[at]


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _gate_row(gate: Array, value: Array, out: Array) -> None:
    for at in range(len(out)):
        out[at] = gate[at] / (_ONE + exponential(-gate[at])) * value[at]


@compiled
def _norm(arguments: int) -> None:
    units, rows, width = word(arguments, 1), word(arguments, 2), word(arguments, 3)
    epsilon = number(arguments, 4)
    x, weight, out = word(arguments, 5), word(arguments, 6), word(arguments, 7)
    unit = ticket(arguments)
    while unit < units:
        for row in range(unit * _ROWS, min(rows, (unit + 1) * _ROWS)):
            start = 4 * width * row
            _norm_row(
                floats(x + start, width), floats(weight, width), floats(out + start, width), epsilon
            )
        unit = ticket(arguments)


@compiled
def _gate(arguments: int) -> None:
    units, rows, width = word(arguments, 1), word(arguments, 2), word(arguments, 3)
    x, out = word(arguments, 4), word(arguments, 5)
    unit = ticket(arguments)
    while unit < units:
        for row in range(unit * _ROWS, min(rows, (unit + 1) * _ROWS)):
            start = 4 * width * row
            gate, value = floats(x + 2 * start, width), floats(x + 2 * start + 4 * width, width)
            _gate_row(gate, value, floats(out + start, width))
        unit = ticket(arguments)


_run_norm, _run_gate = Kernel(_norm), Kernel(_gate)


def norm(rows: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """RMSNorm (Zhang and Sennrich 2019) of each row: float32 [rows, width] → the same."""
    out = rows.new_empty(rows.shape)
    _run_norm(
        -(-len(rows) // _ROWS), *rows.shape, epsilon,
        rows.data_ptr(), weight.data_ptr(), out.data_ptr(),
    )  # fmt: skip
    return out


def gate(rows: Tensor) -> Tensor:
    """SwiGLU (Shazeer 2020): float32 [rows, 2 · width], gate before value → [rows, width]."""
    out = rows.new_empty(len(rows), rows.shape[1] // 2)
    _run_gate(-(-len(rows) // _ROWS), *out.shape, rows.data_ptr(), out.data_ptr())
    return out
