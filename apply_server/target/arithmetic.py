"""How a lean pass computes: the operations that a number type decides, and nothing else.

Two answers to the same questions: `FloatArithmetic` computes in the weights' own type, as fast as
the processor can; `ExactArithmetic` (exact.py) so that no row depends on the block it is in. Must
not know models, drafts or caches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from apply_server.target.attention import attend
from apply_server.target.packed_linear import Product, product

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# By each type's precision, with room to spare: what a target is measured to need may only be more
# (TransformersTarget.widen_tolerance).
TOLERANCES = {"float32": 1e-3, "float16": 0.1, "bfloat16": 0.75}


class Arithmetic(Protocol):
    """`name` is the number type as users name it, `activations` the type between operations.

    `tolerance`: a row's logits may differ by less between blocks; 0 where they are the same bits.
    """

    name: str
    tolerance: float
    activations: torch.dtype

    def linear(self, weight: Tensor, bias: Tensor | None) -> Product:
        """The product with `weight` [out, in], laid out for it; `weight` is not kept."""
        ...

    def norm(self, rows: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """RMSNorm (Zhang and Sennrich 2019) of each row: [rows, width] → the same."""
        ...

    def gate(self, rows: Tensor) -> Tensor:
        """SwiGLU (Shazeer 2020): [rows, 2 · width], gate before value → [rows, width]."""
        ...

    def settled(self, heads: Tensor) -> Tensor:
        """Queries, keys and values [heads, n, dim] as `attend` wants them and the cache holds them;
        may be computed in place.
        """
        ...

    def attend(
        self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float
    ) -> Tensor:
        """Masked attention (see attention.attend): [heads, n, dim] × [kv_heads, m, dim], mask
        [n, w] → [heads, n, dim], all of them settled, the result in the activations' type.
        """
        ...

    def attend_prompt(
        self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float
    ) -> Tensor:
        """The same for a chunk of a prompt, where rows may depend on the chunk."""
        ...


class FloatArithmetic:
    """Everything in the weights' own type."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.name = str(dtype).removeprefix("torch.")
        self.tolerance = TOLERANCES[self.name]
        self.activations = dtype

    def linear(self, weight: Tensor, bias: Tensor | None) -> Product:
        """The fastest product there is here."""
        own = None if bias is None else bias.to(self.activations)
        return product(weight.to(self.activations), own)

    def norm(self, rows: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """Torch's own, which computes in float32 inside."""
        import torch

        return torch.nn.functional.rms_norm(rows, weight.shape, weight, epsilon)

    def gate(self, rows: Tensor) -> Tensor:
        """Torch's own."""
        import torch

        gate, value = rows.chunk(2, dim=-1)
        return torch.nn.functional.silu(gate) * value

    def settled(self, heads: Tensor) -> Tensor:
        """As they are."""
        return heads

    def attend(
        self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float
    ) -> Tensor:
        """Short blocks as plain products, long ones by the flash kernel."""
        return attend(query, keys, values, mask, scale)

    attend_prompt = attend
