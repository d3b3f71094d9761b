"""Rows times a packed weight, from float32 to float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from numba import njit

from apply_server.kernels.memory import ask_for_large_pages
from apply_server.kernels.microkernel import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    INPUTS,
    LANES,
    NUMBER_BYTES,
    PANEL,
    PANELS,
    multiply,
)
from apply_server.kernels.team import Kernel, compiled, ticket, word

if TYPE_CHECKING:
    from torch import Tensor

# Steps that are summed before they are added to the others: of a few rows, and of the panels they
# are multiplied with, so much stays in the nearest caches; and a long sum is more exact in parts.
_STEPS = 768 if LANES < PANEL else 384


@njit(cache=True)
def _product(kind: int, column_bytes: int, arguments: int) -> None:
    """A row has `width` steps, and a step `column_bytes` of each column."""
    rows, width, panels = word(arguments, 2), word(arguments, 3), word(arguments, 4)
    x, w, bias, out = (
        word(arguments, 5), word(arguments, 6), word(arguments, 7), word(arguments, 8)
    )  # fmt: skip
    units = word(arguments, 1)
    row_bytes, step_bytes, out_bytes = (
        NUMBER_BYTES * width,
        column_bytes * PANEL,
        4 * PANEL * panels,
    )
    unit = ticket(arguments)
    while unit < units:
        first = unit * PANELS
        count = min(PANELS, panels - first)
        offset = 4 * PANEL * first
        start, start_row = bias + offset, 0
        for step in range(0, width, _STEPS):
            multiply(
                kind, False, rows, count,
                x + NUMBER_BYTES * step, row_bytes, NUMBER_BYTES,
                w + (first * width + step) * step_bytes, step_bytes, width * step_bytes,
                start, start_row, out + offset, out_bytes, 4 * PANEL, min(_STEPS, width - step),
                0, 0,
            )  # fmt: skip
            start, start_row = out + offset, out_bytes
        unit = ticket(arguments)


@compiled
def _float32(arguments: int) -> None:
    _product(FLOAT32, 4, arguments)


@compiled
def _bfloat16(arguments: int) -> None:
    _product(BFLOAT16, 2 * INPUTS[BFLOAT16], arguments)


@compiled
def _float16(arguments: int) -> None:
    _product(FLOAT16, 2, arguments)


_KERNELS = {
    "float32": Kernel(_float32),
    "bfloat16": Kernel(_bfloat16),
    "float16": Kernel(_float16),
}


def float_linear(dtype: str) -> Callable[[Tensor, Tensor | None], Callable[[Tensor], Tensor]]:
    """Makes products with weights that are kept as `dtype`: "float32", "bfloat16" or "float16".

    Rows are rounded to bfloat16 too where the processor multiplies pairs of those.
    """
    import torch

    kernel, own = _KERNELS[dtype], getattr(torch, dtype)
    return lambda weight, bias: _linear(kernel, weight.to(own), bias)


def _linear(kernel: Kernel, weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """The product with `weight` [out, in] and `bias` [out]: float32 [rows, in] → [rows, out]."""
    import torch

    together = INPUTS[BFLOAT16] if weight.dtype == torch.bfloat16 else 1
    packed = pack(weight, together)
    panels, width = packed.shape[:2]
    added = torch.zeros(panels * PANEL)
    if bias is not None:
        added[: len(bias)] = bias
    units, columns = -(-panels // PANELS), len(weight)

    def product(rows: Tensor) -> Tensor:
        given = (rows if together == 1 else _in_pairs(rows)).contiguous()
        out = rows.new_empty(len(rows), panels * PANEL)
        kernel(
            units, len(rows), width, panels,
            *(each.data_ptr() for each in (given, packed, added, out)),
        )  # fmt: skip
        return out[:, :columns].contiguous()

    return product


def _in_pairs(rows: Tensor) -> Tensor:
    """float32 → bfloat16, filled up to an even width."""
    import torch

    return torch.nn.functional.pad(rows.to(torch.bfloat16), (0, rows.shape[1] % 2))


def pack(weight: Tensor, together: int) -> Tensor:
    """[out, in] → panels of columns side by side [out / 16, in / together, 16], filled up with
    zeros; `together` inputs of a column are one number of 32 bits, where it is more than one.
    """
    import torch

    whole = torch.nn.functional.pad(
        weight, (0, -weight.shape[1] % together, 0, -len(weight) % PANEL)
    )
    if together > 1:
        whole = whole.view(torch.int32)
    packed = whole.view(-1, PANEL, whole.shape[1]).transpose(1, 2)
    if packed.dtype == torch.bfloat16:  # see microkernel._bfloat16
        packed = packed.unflatten(2, (2, PANEL // 2)).transpose(2, 3).flatten(2)
    kept = torch.empty(packed.shape, dtype=packed.dtype)
    ask_for_large_pages(kept.data_ptr(), kept.nbytes)
    return kept.copy_(packed)
