"""A transformers causal LM as the target: the only place that knows its forward.

Every pass is one packed row of tokens with explicit positions; attention, the K/V cache and the
masks are ours (attention.py), so batches are ragged without padding and rollback is a number. The
pass itself is a `Network`: the model's own forward, or a leaner one over the same weights. Must not
know proposers, text, or what an edit is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from apply_server.decode.draft import NO_DRAFT, Draft
from apply_server.decode.sampling import GREEDY, Sampling
from apply_server.decode.target import Verdict
from apply_server.errors import DocumentTooLong, ModelUnavailable
from apply_server.target import attention, lean, support
from apply_server.target.arithmetic import FloatArithmetic
from apply_server.target.attention import Block
from apply_server.target.choose import Asked, choose
from apply_server.target.int8 import Int8Arithmetic
from apply_server.target.kv_cache import KVCache
from apply_server.target.packed_linear import pack_linears
from apply_server.target.tree_mask import block_mask, depths

if TYPE_CHECKING:
    from torch import Tensor

# Short enough that a cancelled prefill stops within a few seconds on two slow cores, long enough
# that its matrix products run at the rate of longer ones.
PREFILL_CHUNK = 128


@dataclass(slots=True)
class TransformersSlot:
    """A sequence in the target.

    `tokens` ends with the pending one; those before it are in the cache once prefill is done.
    `draft` is what the last pass was fed besides.
    """

    cache: KVCache
    tokens: list[int]
    sampling: Sampling
    draft: Draft = field(default=NO_DRAFT)

    @property
    def pending(self) -> int:
        """The token that is chosen but not yet computed."""
        return self.tokens[-1]


@dataclass(frozen=True, slots=True)
class _Feed:
    """What one slot brings to a pass: the pending token and a draft behind it."""

    cache: KVCache
    tokens: tuple[int, ...]
    draft: Draft


class Network(Protocol):
    """One packed pass. `device` as torch names it, `dtype` the number type as users name it."""

    device: str
    dtype: str

    def __call__(
        self, tokens: Sequence[int], positions: Sequence[int], blocks: Sequence[Block], logits: int
    ) -> Tensor:
        """Logits [rows, vocabulary] of the last `logits` rows (0 = all); writes K/V of all."""
        ...


class StockNetwork:
    """The model's own forward, with our attention."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.device = str(model.device)
        self.dtype = str(model.dtype).removeprefix("torch.")

    def __call__(
        self, tokens: Sequence[int], positions: Sequence[int], blocks: Sequence[Block], logits: int
    ) -> Tensor:
        """See Network."""
        import torch

        with torch.no_grad():
            output = self.model(
                input_ids=torch.tensor([list(tokens)], device=self.device),
                position_ids=torch.tensor([list(positions)], device=self.device),
                use_cache=False,
                logits_to_keep=logits,
                blocks=blocks,
            )
        result: Tensor = output.logits[0]
        return result


class TransformersTarget:
    """A causal LM's choices. `context` is the most tokens a sequence may hold."""

    def __init__(self, network: Network, context: int) -> None:
        self.network = network
        self.context = context
        self.passes = 0

    @classmethod
    def load(cls, folder: Path, device: str = "auto", dtype: str = "auto") -> TransformersTarget:
        """Load a folder of weights; refuse, with the reason, what can't be verified exactly.

        Raises ModelUnavailable. `dtype` "auto" is int8 on a CPU where the model and the processor
        allow it (see support.resolve_dtype).
        """
        from transformers import AutoConfig

        device = support.resolve_device(device)
        try:
            config = AutoConfig.from_pretrained(folder)
            support.check_config(config)
            dtype = support.resolve_dtype(dtype, device, lean=lean.fits(config))
            make = _lean if device == "cpu" and lean.fits(config) else _stock
            target = cls(make(folder, config, device, dtype), support.context_length(config))
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ModelUnavailable(f"Could not load a model from {folder}: {error}") from error
        return target

    @property
    def device(self) -> str:
        """Where the weights are, as torch names it."""
        return self.network.device

    @property
    def dtype(self) -> str:
        """The number type as users name it."""
        return self.network.dtype

    def open(
        self, prompt: Sequence[int], room: int, sampling: Sampling = GREEDY
    ) -> TransformersSlot:
        """Reserve a cache; the prompt's last token is pending, the others wait for prefill."""
        needed = len(prompt) + room
        if needed > self.context:
            raise DocumentTooLong(
                f"Needs about {needed} tokens; the model's limit is {self.context}. "
                "Nothing was changed.",
                {"needed": needed, "limit": self.context},
            )
        return TransformersSlot(KVCache(needed), list(prompt), sampling)

    def prefill(self, slot: TransformersSlot) -> Iterator[int]:
        """Chunk by chunk, so that cancelling never waits for the whole prompt."""
        while rest := slot.tokens[slot.cache.length : -1]:
            chunk = tuple(rest[:PREFILL_CHUNK])
            self._forward([_Feed(slot.cache, chunk, Draft.chain(chunk[1:]))], logits=1)
            slot.cache.keep(range(len(chunk)))
            yield slot.cache.length

    def verify(self, batch: Sequence[tuple[TransformersSlot, Draft]]) -> list[Verdict]:
        """One forward pass over all slots' pending tokens and drafts."""
        feeds = [_Feed(slot.cache, (slot.pending, *draft.tokens), draft) for slot, draft in batch]
        logits = self._forward(feeds, logits=0)  # [total, vocabulary]
        self.passes += 1
        for slot, draft in batch:
            slot.draft = draft
        return choose(logits, [Asked(slot.tokens, slot.draft, slot.sampling) for slot, _ in batch])

    def commit(self, slot: TransformersSlot, path: Sequence[int], pending: int) -> None:
        """Keep the pending token's row and the path's rows."""
        slot.cache.keep([0, *(1 + node for node in path)])
        slot.tokens += (*(slot.draft.tokens[node] for node in path), pending)

    def close(self, slot: TransformersSlot) -> None:
        """Drop the cache's tensors."""
        slot.cache = KVCache(0)

    def logits_after(self, slot: TransformersSlot) -> Tensor:
        """The next token's logits [vocabulary] after the pending one, without committing it."""
        return self._forward([_Feed(slot.cache, (slot.pending,), NO_DRAFT)], logits=1)[0]

    def _forward(self, feeds: Sequence[_Feed], logits: int) -> Tensor:
        """Run the packed rows; `logits` is how many rows, from the end, get logits (0 = all)."""
        tokens = [token for feed in feeds for token in feed.tokens]
        positions = [feed.cache.length + depth for feed in feeds for depth in depths(feed.draft)]
        return self.network(tokens, positions, self._blocks(feeds), logits)

    def _blocks(self, feeds: Sequence[_Feed]) -> list[Block]:
        blocks: list[Block] = []
        start = 0
        for feed in feeds:
            rows = slice(start, start + len(feed.tokens))
            mask = block_mask(feed.draft, feed.cache.length, self.device)
            blocks.append(Block(feed.cache, rows, mask))
            start = rows.stop
        return blocks


def _lean(folder: Path, config: Any, device: str, dtype: str) -> Network:
    import torch

    int8 = dtype == support.INT8
    arithmetic = Int8Arithmetic() if int8 else FloatArithmetic(getattr(torch, dtype))
    return lean.LeanNetwork(lean.Shape.of(config), arithmetic, lean.checkpoint(folder))


def _stock(folder: Path, config: Any, device: str, dtype: str) -> Network:
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    attention.register()
    model = AutoModelForCausalLM.from_pretrained(
        folder, config=config, dtype=dtype, attn_implementation=attention.NAME
    )
    model.to(device).eval().requires_grad_(False)
    pack_linears(model)
    network = StockNetwork(model)
    support.check_rollback(model, TransformersTarget(network, support.context_length(config)))
    return network
