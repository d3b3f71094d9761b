"""The forward pass of the Llama and Qwen2 family, without what a pass over a draft doesn't need.

The same weights as transformers' own model and the same numbers within rounding: projections that
read the same input are one product, weights are laid out once for the processor, no masks are built
in layers, no keys are copied, and no logits are computed that nobody asks for. Every number is
summed in one order whatever stands beside it (kernels/), so a row has the same bits in every block,
and a draft gives the very tokens that decoding one at a time gives. Must not know drafts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from apply_server.target.attention import Block
from apply_server.target.packed_linear import Product

if TYPE_CHECKING:
    from torch import Tensor

_FAMILY = ("llama", "qwen2")

Linear = Callable[["Tensor", "Tensor | None"], Product]
"""Weight [out, in] and bias [out] → the product with them, from float32 to float32, which gives a
row the same bits in every block.
"""


class Weights(Protocol):
    """A checkpoint's tensors by name; None for one that it doesn't have."""

    def __call__(self, name: str) -> Tensor | None: ...


@dataclass(frozen=True, slots=True)
class Shape:
    """What the configuration says of a model's layers."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    epsilon: float
    theta: float

    @staticmethod
    def of(config: Any) -> Shape:
        """From transformers' configuration of a model that `fits`."""
        heads = config.num_attention_heads
        return Shape(
            layers=config.num_hidden_layers,
            heads=heads,
            kv_heads=config.num_key_value_heads,
            head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
            epsilon=config.rms_norm_eps,
            theta=config.rope_parameters["rope_theta"],
        )


def fits(config: Any) -> bool:
    """Whether this pass computes what the model's own does."""
    rope = getattr(config, "rope_parameters", None) or {}
    return bool(
        config.model_type in _FAMILY
        and config.hidden_act == "silu"
        and rope.get("rope_type") == "default"
        and not set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    )


@dataclass(frozen=True, slots=True)
class _Layer:
    before_attention: Tensor
    query_key_value: Product
    out: Product
    before_gate: Tensor
    gate_up: Product
    down: Product


class LeanNetwork:
    """See Network (transformers_model.py)."""

    device = "cpu"
    tolerance = 0.0

    def __init__(self, shape: Shape, dtype: str, linear: Linear, weights: Weights) -> None:
        """Lays the weights out, a few layers at a time: no more memory than they need in the end,
        and those layers. Compiles the kernels where this machine hasn't yet: some seconds. Raises
        KeyError for a checkpoint that lacks a weight.
        """
        import torch

        from apply_server.kernels.attention import attention
        from apply_server.kernels.rows import gate, norm

        self.dtype = dtype
        self.shape = shape
        self._norm_rows, self._gate, self._attend = norm, gate, attention
        # A copy, as one tensor in use keeps the whole checkpoint mapped into memory.
        self._embeddings = _needed(weights, "model.embed_tokens.weight").clone()
        own = weights("lm_head.weight")
        output = self._embeddings if own is None else own
        with ThreadPoolExecutor(torch.get_num_threads()) as workers:
            head = workers.submit(linear, output, None)  # first: it takes the longest
            prefixes = (f"model.layers.{index}." for index in range(shape.layers))
            self._layers = list(workers.map(lambda each: _layer(weights, each, linear), prefixes))
        self._norm = _needed(weights, "model.norm.weight").float()
        self._head = head.result()
        halves = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
        self._frequencies = shape.theta**-halves  # [head_dim / 2]

    def __call__(
        self, tokens: Sequence[int], positions: Sequence[int], blocks: Sequence[Block], logits: int
    ) -> tuple[Tensor, Tensor]:
        """See Network."""
        import torch

        epsilon = self.shape.epsilon
        with torch.no_grad():
            rows = self._embeddings[torch.tensor(tokens)].float()
            angles = self._angles(positions)
            for index, layer in enumerate(self._layers):
                normed = self._norm_rows(rows, layer.before_attention, epsilon)
                mixed = self._attention(index, layer.query_key_value(normed), angles, blocks)
                rows = rows + layer.out(mixed)
                normed = self._norm_rows(rows, layer.before_gate, epsilon)
                rows = rows + layer.down(self._gate(layer.gate_up(normed)))
            hidden = self._norm_rows(rows[-logits:], self._norm, epsilon)
            return self._head(hidden), hidden

    def project(self, hidden: Tensor) -> Tensor:
        """See Network."""
        return self._head(hidden)

    def _attention(
        self,
        index: int,
        projected: Tensor,
        angles: tuple[Tensor, Tensor],
        blocks: Sequence[Block],
    ) -> Tensor:
        """[rows, (heads + 2 kv_heads) · dim] → [rows, heads · dim]."""
        import torch

        shape = self.shape
        split = (shape.heads, shape.kv_heads, shape.kv_heads)
        by_head = projected.view(len(projected), -1, shape.head_dim).transpose(0, 1)
        _rotate(by_head[: -shape.kv_heads], *angles)  # queries and keys
        query, key, value = by_head.split(split)  # [heads, rows, dim]
        scale = shape.head_dim**-0.5
        parts = []
        for block in blocks:
            keys, values = block.cache.write(index, key[:, block.rows], value[:, block.rows])
            parts.append(self._attend(query[:, block.rows], keys, values, block.mask, scale))
        return torch.cat(parts, dim=1).transpose(0, 1).reshape(len(projected), -1)

    def _angles(self, positions: Sequence[int]) -> tuple[Tensor, Tensor]:
        """cos and sin [rows, dim] of the rotary embedding (Su et al. 2021); the first half's sines
        are negative, as what they are multiplied with is the other half turned back.
        """
        import torch

        half = torch.outer(torch.tensor(positions, dtype=torch.float32), self._frequencies)
        cosine, sine = half.cos(), half.sin()
        return torch.cat([cosine, cosine], dim=-1), torch.cat([-sine, sine], dim=-1)


def checkpoint(folder: Path) -> Weights:
    """The tensors of a folder, mapped into memory and not read before they are used."""
    from safetensors import safe_open

    files: list[Any] = [safe_open(path, "pt") for path in sorted(folder.glob("*.safetensors"))]
    where = {name: file for file in files for name in file.keys()}  # noqa: SIM118 (not a dict)
    return lambda name: where[name].get_tensor(name) if name in where else None


def _layer(weights: Weights, prefix: str, linear: Linear) -> _Layer:
    import torch

    def joined(*names: str) -> Product:
        """Projections of the same input as one product."""
        matrices = [_needed(weights, f"{prefix}{name}.weight") for name in names]
        biases = [bias for name in names if (bias := weights(f"{prefix}{name}.bias")) is not None]
        return linear(torch.cat(matrices), torch.cat(biases) if biases else None)

    def norm(name: str) -> Tensor:
        return _needed(weights, f"{prefix}{name}.weight").float()

    return _Layer(
        norm("input_layernorm"),
        joined("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        joined("self_attn.o_proj"),
        norm("post_attention_layernorm"),
        joined("mlp.gate_proj", "mlp.up_proj"),
        joined("mlp.down_proj"),
    )


def _rotate(heads: Tensor, cosine: Tensor, sine: Tensor) -> None:
    """[heads, rows, dim] in place, each half turned against the other, as these checkpoints expect;
    `sine` as `_angles` gives it.
    """
    turned = heads.roll(heads.shape[-1] // 2, -1).mul_(sine)
    heads.mul_(cosine).add_(turned)


def _needed(weights: Weights, name: str) -> Tensor:
    found = weights(name)
    if found is None:
        raise KeyError(name)
    return found
