"""Softmax attention of a block of rows over what is cached and over each other.

A column of 16 is a row of one head, and its numbers are summed key by key: keys that a row doesn't
see add zeros, so it is the same whether the rows of other branches lie between them or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from apply_server.kernels.functions import exponential
from apply_server.kernels.memory import Array, floats, octets
from apply_server.kernels.microkernel import FLOAT32, PANEL, multiply
from apply_server.kernels.team import Kernel, compiled, number, ticket, word

if TYPE_CHECKING:
    from torch import Tensor

# Keys whose values stay in a cache while all rows of a unit are multiplied with them.
_KEYS = 1024
_UNSEEN = np.float32(-np.inf)


@njit(cache=True)
def _gather(
    query: int, head_step: int, row_step: int, group: int, first: int, count: int, panel: Array
) -> None:
    """Rows of a unit as columns side by side, [dim, 16]: column i is head i % group of row
    i // group, counted from `first`. Steps are in bytes.
    """
    dim = len(panel) // PANEL
    for column in range(count):
        row, head = (first + column) // group, (first + column) % group
        numbers = floats(query + head * head_step + row * row_step, dim)
        for at in range(dim):
            panel[at * PANEL + column] = numbers[at]


@njit(cache=True)
def _hide(
    scores: Array, mask: Array, width: int, keys: int, group: int, first: int, count: int
) -> None:
    """`mask` [rows, width] says what is seen of the last keys; what comes before, all rows see."""
    for column in range(count):
        row = (first + column) // group
        for at in range(width):
            if mask[row * width + at] == 0:
                scores[(keys - width + at) * PANEL + column] = _UNSEEN


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _soften(scores: Array, keys: int, scale: float, totals: Array) -> None:
    """Scores [keys, 16] → e^(scale · (score - the column's largest)) in place, and their sums."""
    largest = np.full(PANEL, _UNSEEN, np.float32)
    for key in range(keys):
        for column in range(PANEL):
            largest[column] = max(largest[column], scores[key * PANEL + column])
    totals[:] = 0
    for key in range(keys):
        for column in range(PANEL):
            share = exponential((scores[key * PANEL + column] - largest[column]) * scale)
            scores[key * PANEL + column] = share
            totals[column] += share


@compiled
def _attention(arguments: int) -> None:
    units, rows, group, dim = (
        word(arguments, 1), word(arguments, 2), word(arguments, 3), word(arguments, 4)
    )  # fmt: skip
    query, head_step, row_step = word(arguments, 5), word(arguments, 6), word(arguments, 7)
    keys, values, kv_step, length = (
        word(arguments, 8), word(arguments, 9), word(arguments, 10), word(arguments, 11)
    )  # fmt: skip
    mask, width = word(arguments, 12), word(arguments, 13)
    out, heads, scale = word(arguments, 14), word(arguments, 15), number(arguments, 16)
    seen = octets(mask, rows * width)
    row_bytes, panel_bytes = 4 * dim, 4 * PANEL
    kv_heads = heads // group
    # Made once and used in every turn: numba frees an array where its name is read last, which
    # otherwise would be where its address is taken.
    panel, mixed = np.empty(dim * PANEL, np.float32), np.empty(PANEL * dim, np.float32)
    scores, totals = np.empty(length * PANEL, np.float32), np.empty(PANEL, np.float32)
    unit = ticket(arguments)
    while unit < units:
        kv_head, first = unit % kv_heads, unit // kv_heads * PANEL
        count = min(PANEL, rows * group - first)
        panel[:], scores[:], mixed[:] = 0, 0, 0
        own = query + kv_head * group * head_step
        _gather(own, head_step, row_step, group, first, count, panel)
        multiply(
            FLOAT32, True, length, 1,
            keys + kv_head * kv_step, row_bytes, 4,
            panel.ctypes.data, panel_bytes, 0,
            scores.ctypes.data, panel_bytes, scores.ctypes.data, panel_bytes, 0, dim, 0, 0,
        )  # fmt: skip
        _hide(scores, seen, width, length, group, first, count)
        _soften(scores, length, scale, totals)
        for key in range(0, length, _KEYS):
            multiply(
                FLOAT32, True, count, dim // PANEL,
                scores.ctypes.data + panel_bytes * key, 4, panel_bytes,
                values + kv_head * kv_step + row_bytes * key, row_bytes, panel_bytes,
                mixed.ctypes.data, row_bytes, mixed.ctypes.data, row_bytes, panel_bytes,
                min(_KEYS, length - key), 0, 0,
            )  # fmt: skip
        for column in range(count):
            row, head = (first + column) // group, kv_head * group + (first + column) % group
            result = floats(out + row_bytes * (row * heads + head), dim)
            for at in range(dim):
                result[at] = mixed[column * dim + at] / totals[column]
        unit = ticket(arguments)


_run = Kernel(_attention)


def attention(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Masked attention of one slot: float32 [heads, n, dim] × [kv_heads, m, dim], bool mask [n, w]
    (what is seen of the last w keys) → [heads, n, dim].
    """
    import torch

    heads, rows, dim = query.shape
    if missing := -dim % PANEL:
        query, keys, values = (
            torch.nn.functional.pad(each, (0, missing)) for each in (query, keys, values)
        )
        return attention(query, keys, values, mask, scale)[..., :dim]
    kv_heads, length, _ = keys.shape
    group, seen = heads // kv_heads, mask.contiguous()
    out = query.new_empty(rows, heads, dim)
    parts = -(-rows * group // PANEL)
    _run(
        kv_heads * parts, rows, group, dim,
        query.data_ptr(), 4 * query.stride(0), 4 * query.stride(1),
        keys.data_ptr(), values.data_ptr(), 4 * keys.stride(0), length,
        seen.data_ptr(), seen.shape[1], out.data_ptr(), heads, scale,
    )  # fmt: skip
    return out.transpose(0, 1)
