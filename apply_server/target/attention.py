"""Attention over a packed batch: every slot's rows side by side, each with its own keys.

Registered with transformers under NAME, so that any model that goes through its attention
interface runs ragged batches without padding and writes K/V where we want them. Must not know
drafts: masks come ready-made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from apply_server.target.kv_cache import KVCache

if TYPE_CHECKING:
    from torch import Tensor

NAME = "apply_server_packed"

# Below this many rows two plain matrix products beat the flash kernel, whose tiles stay empty.
SHORT_BLOCK = 64


@dataclass(frozen=True, slots=True)
class Block:
    """One slot's rows in a packed pass: `rows` of the batch, `cache` and bool mask [rows, rows]."""

    cache: KVCache
    rows: slice
    mask: Tensor


def packed_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: object,
    *,
    blocks: Sequence[Block],
    scaling: float | None = None,
    **_ignored: object,
) -> tuple[Tensor, None]:
    """The function transformers calls in every layer.

    `query` [1, heads, total, dim], `key` and `value` [1, kv_heads, total, dim]; returns
    [1, total, heads, dim]. What a model passes besides (dropout, position ids) doesn't concern us;
    models for which it would (sliding windows, soft caps) are refused at load.
    """
    import torch

    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    parts = []
    for block in blocks:
        keys, values = block.cache.write(
            module.layer_idx, key[0, :, block.rows], value[0, :, block.rows]
        )
        parts.append(attend(query[0, :, block.rows], keys, values, block.mask, scale))
    return torch.cat(parts, dim=1).transpose(0, 1).unsqueeze(0), None


def attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Masked attention of one slot: [heads, n, dim] × [kv_heads, m, dim] → [heads, n, dim].

    `mask` [n, w] says which of the last w keys each row sees; those before, all rows see.
    """
    import torch

    heads, rows, dim = query.shape
    kv_heads = keys.shape[0]
    if rows > SHORT_BLOCK:
        whole = torch.nn.functional.pad(mask, (keys.shape[1] - mask.shape[1], 0), value=True)
        out = torch.nn.functional.scaled_dot_product_attention(
            query[None], keys[None], values[None], attn_mask=whole, scale=scale, enable_gqa=True
        )
        return out[0]
    # In its own type: on AVX2 float32 would take a sixth of bfloat16's time, but torch's bfloat16
    # product gives a row the same bits in every block there. Without that the keys and values of a
    # block are not plain decoding's, and two texts of ten came out otherwise.
    # Query heads that share keys are stacked into one matrix: [kv_heads, group * n, dim].
    stacked = query.reshape(kv_heads, -1, dim)
    scores = (stacked @ keys.transpose(1, 2)).float() * scale  # [kv_heads, group * n, m]
    by_row = scores.view(heads, rows, -1)
    by_row[..., -mask.shape[1] :].masked_fill_(~mask, float("-inf"))
    weights = scores.softmax(-1).to(values.dtype)
    return (weights @ values).view(heads, rows, -1)


def register() -> None:
    """Make the function known to transformers; repeating it changes nothing."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, packed_attention)
