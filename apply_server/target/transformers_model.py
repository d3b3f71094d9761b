"""A transformers causal LM as the target: the only place that knows its forward.

Every pass is one packed row of tokens with explicit positions; attention, the K/V cache and the
masks are ours (attention.py), so batches are ragged without padding and rollback is a number. The
pass itself is a `Network`: the model's own forward, or a leaner one over the same weights. Must not
know proposers, text, or what an edit is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from apply_server.decode.draft import NO_DRAFT, ROOT, Distribution, Draft
from apply_server.decode.sampling import GREEDY, Sampling
from apply_server.decode.target import UNDECIDED, Verdict
from apply_server.errors import DocumentTooLong, ModelUnavailable
from apply_server.target import attention, heap, lean, support
from apply_server.target.attention import Block
from apply_server.target.choose import TOLERANCES, Asked, choose, draft_token, near_ties
from apply_server.target.int8 import int8_linear
from apply_server.target.kv_cache import KVCache
from apply_server.target.packed_linear import pack_linears
from apply_server.target.prefix_cache import PrefixCache
from apply_server.target.tree_mask import block_mask, depths

if TYPE_CHECKING:
    from torch import Tensor

# Short enough that a cancelled prefill stops within a few seconds on two slow cores, long enough
# that its matrix products run at the rate of longer ones.
PREFILL_CHUNK = 128

# The likeliest tokens of a row, which are looked at to see how far block and single token are
# apart, and by how much farther apart than any of these a near-tie may be.
_RIVALS, _MARGIN = 8, 4.0


@dataclass(slots=True)
class TransformersSlot:
    """A sequence in the target.

    `prompt` is what it was opened with. `tokens` ends with the pending one; those before it are in
    the cache once prefill is done. `draft` is what the last pass was asked to verify, `verdict`
    what it said of what it was fed. `doubt`: what follows the pending token was too close to call
    in a block, and is for a pass over that token alone to decide, as plain decoding would.
    """

    cache: KVCache
    prompt: tuple[int, ...]
    tokens: list[int]
    sampling: Sampling
    draft: Draft = field(default=NO_DRAFT)
    verdict: Verdict = field(default=Verdict(()))
    doubt: bool = False

    @property
    def pending(self) -> int:
        """The token that is chosen but not yet computed."""
        return self.tokens[-1]


@dataclass(frozen=True, slots=True)
class _Feed:
    """What one slot brings to a pass: the pending token and a draft behind it, or its prompt's
    next tokens, as a draft that is accepted unseen.
    """

    cache: KVCache
    tokens: tuple[int, ...]
    draft: Draft


class Network(Protocol):
    """One packed pass. `device` as torch names it, `dtype` the number type as users name it.

    `tolerance`: a row's logits may differ by less between blocks; 0 where they are the same bits.
    """

    device: str
    dtype: str
    tolerance: float

    def __call__(
        self, tokens: Sequence[int], positions: Sequence[int], blocks: Sequence[Block], logits: int
    ) -> tuple[Tensor, Tensor]:
        """Logits [rows, vocabulary] of the last `logits` rows (0 = all), and the hidden states
        [rows, hidden] that the output matrix was given for them; writes K/V of all rows.
        """
        ...

    def project(self, hidden: Tensor) -> Tensor:
        """The output matrix: hidden states [n, hidden] → logits [n, vocabulary]."""
        ...


class StockNetwork:
    """The model's own forward, with our attention."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.device = str(model.device)
        self.dtype = str(model.dtype).removeprefix("torch.")
        self.tolerance = TOLERANCES[self.dtype]

    def __call__(
        self, tokens: Sequence[int], positions: Sequence[int], blocks: Sequence[Block], logits: int
    ) -> tuple[Tensor, Tensor]:
        """See Network."""
        import torch

        with torch.no_grad(), self._hidden() as hidden:
            output = self.model(
                input_ids=torch.tensor([list(tokens)], device=self.device),
                position_ids=torch.tensor([list(positions)], device=self.device),
                use_cache=False,
                logits_to_keep=logits,
                blocks=blocks,
            )
        return output.logits[0], hidden[0][0]

    def project(self, hidden: Tensor) -> Tensor:
        """See Network."""
        logits: Tensor = self.model.get_output_embeddings()(hidden)
        return logits

    @contextmanager
    def _hidden(self) -> Iterator[list[Tensor]]:
        """Collects what the output matrix is given: [1, rows, hidden] for each forward pass."""
        given: list[Tensor] = []
        hook = self.model.get_output_embeddings().register_forward_pre_hook(
            lambda _, inputs: given.append(inputs[0])
        )
        try:
            yield given
        finally:
            hook.remove()


class TransformersTarget:
    """A causal LM's choices. `context` is the most tokens a sequence may hold.

    Prompts computed before are used again up to `prefix_bytes` of keys and values. Near-ties within
    `tolerance`, by default the network's, are decided by a pass over one token.
    """

    def __init__(
        self,
        network: Network,
        context: int,
        prefix_bytes: int = 0,
        tolerance: float | None = None,
    ) -> None:
        self.network = network
        self.context = context
        self.tolerance = network.tolerance if tolerance is None else tolerance
        self.prefixes = PrefixCache(PREFILL_CHUNK, prefix_bytes)
        self.passes = 0

    @classmethod
    def load(
        cls, folder: Path, device: str = "auto", dtype: str = "auto", prefix_bytes: int = 0
    ) -> TransformersTarget:
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
            network = make(folder, config, device, dtype)
            heap.give_back()
            target = cls(network, support.context_length(config), prefix_bytes)
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

    def spread(self, tokens: Sequence[int]) -> float:
        """How far the distance between two likely tokens' logits moves between a block of `tokens`
        and passes over one of them at a time: the most in any row, 0 where both are the same bits.
        """
        fed = tuple(tokens)
        cache = KVCache(len(fed))
        block, _ = self._forward([_Feed(cache, fed, Draft.chain(fed[1:]))], logits=0)
        moved: list[float] = []
        for token, row in zip(fed, block.float(), strict=True):
            alone, _ = self._forward([_Feed(cache, (token,), NO_DRAFT)], logits=0)
            cache.keep([0])
            likely = row.topk(min(_RIVALS, len(row))).indices
            difference = alone[0].float()[likely] - row[likely]
            moved.append(float(difference.max() - difference.min()))
        return max(moved)

    def widen_tolerance(self, spread: float) -> None:
        """Make the tolerance enough for this `spread`; it never gets smaller.

        Also of a pass that is held to be exact: if a compiler or library ever makes it not so,
        near-ties are decided as in any float type.
        """
        if spread:
            least = TOLERANCES.get(self.dtype, 0.0)
            self.tolerance = max(self.tolerance, least, _MARGIN * spread)

    def open(
        self, prompt: Sequence[int], room: int, sampling: Sampling = GREEDY
    ) -> TransformersSlot:
        """Reserve a cache; the prompt's last token is pending, the others wait for prefill unless
        an earlier prompt began with them.
        """
        needed = len(prompt) + room
        if needed > self.context:
            raise DocumentTooLong(
                f"Needs about {needed} tokens; the model's limit is {self.context}. "
                "Nothing was changed.",
                {"needed": needed, "limit": self.context},
            )
        cache = self.prefixes.open(prompt, needed)
        return TransformersSlot(cache, tuple(prompt), list(prompt), sampling)

    def cached(self, slot: TransformersSlot) -> int:
        """See TargetModel.cached."""
        return slot.cache.length

    def prefill(self, slot: TransformersSlot) -> Iterator[int]:
        """Chunk by chunk, so that cancelling never waits for the whole prompt.

        The last chunk could carry the first draft, which would spare the first pass: one of about
        215 in an edit that rewrites 700 tokens, one of about 16 where a draft is a whole file.
        """
        while rest := slot.tokens[slot.cache.length : -1]:
            chunk = tuple(rest[:PREFILL_CHUNK])
            self._forward([_Feed(slot.cache, chunk, Draft.chain(chunk[1:]))], logits=1)
            slot.cache.keep(range(len(chunk)))
            yield slot.cache.length

    def verify(self, batch: Sequence[tuple[TransformersSlot, Draft]]) -> list[Verdict]:
        """One forward pass over all slots' pending tokens and drafts; one more, over pending tokens
        alone, for those whose very first choice is too close to call in a block.
        """
        fed = [(slot, NO_DRAFT if slot.doubt else draft) for slot, draft in batch]
        verdicts = self._verdicts(fed)
        close = [at for at, verdict in enumerate(verdicts) if verdict.choices[0] == UNDECIDED]
        decided = self._verdicts([(batch[at][0], NO_DRAFT) for at in close])
        for at, verdict in zip(close, decided, strict=True):
            verdicts[at] = replace(verdict, arbitrated=True, repeated=True)
        for (slot, draft), verdict in zip(batch, verdicts, strict=True):
            slot.draft, slot.verdict = draft, verdict
        return [_padded(slot.verdict, draft, slot.doubt) for slot, draft in batch]

    def _verdicts(self, fed: Sequence[tuple[TransformersSlot, Draft]]) -> list[Verdict]:
        """One pass. A block's near-ties stay undecided; a token alone is the shape that decides."""
        if not fed:
            return []
        feeds = [_Feed(slot.cache, (slot.pending, *draft.tokens), draft) for slot, draft in fed]
        logits, hidden = self._forward(feeds, logits=0)  # [total, vocabulary], [total, hidden]
        self.passes += 1
        asked = [Asked(slot.tokens, draft, slot.sampling) for slot, draft in fed]
        verdicts = choose(logits, asked, hidden)
        parts = logits.split([len(feed.tokens) for feed in feeds])
        return [
            _doubting(part, each, verdict, self.tolerance) if each.draft else verdict
            for part, each, verdict in zip(parts, asked, verdicts, strict=True)
        ]

    def commit(self, slot: TransformersSlot, path: Sequence[int], pending: int) -> None:
        """Keep the pending token's row and the path's rows."""
        slot.cache.keep([0, *(1 + node for node in path)])
        slot.doubt = _undecided(slot, path, pending)
        slot.tokens += (*(slot.draft.tokens[node] for node in path), pending)

    def close(self, slot: TransformersSlot) -> None:
        """Drop the cache's tensors, but for what the next prompt may begin with."""
        self.prefixes.keep(slot.prompt, slot.cache)
        slot.cache = KVCache(0)

    def warm(self, prompt: Sequence[int]) -> Iterator[int]:
        """See TargetModel.warm. Whole chunks only: of others nothing could be used again."""
        whole = len(prompt) // PREFILL_CHUNK * PREFILL_CHUNK
        slot = self.open(prompt[: whole + 1], room=1)
        try:
            if known := self.cached(slot):
                yield known
            yield from self.prefill(slot)
        finally:
            self.close(slot)

    def logits_after(self, slot: TransformersSlot) -> Tensor:
        """The next token's logits [vocabulary] after the pending one, without committing it."""
        logits, _ = self._forward([_Feed(slot.cache, (slot.pending,), NO_DRAFT)], logits=1)
        return logits[0]

    def sync(self, slot: TransformersSlot, tokens: Sequence[int]) -> None:
        """Make `tokens` the slot's sequence: what agrees with it stays computed, the rest is
        forgotten, and prefill computes what is missing.
        """
        pairs = zip(slot.tokens, tokens, strict=False)
        shorter = min(len(slot.tokens), len(tokens))
        agreed = next((at for at, (old, new) in enumerate(pairs) if old != new), shorter)
        slot.cache.rewind(min(slot.cache.length, agreed, len(tokens) - 1))
        slot.tokens = list(tokens)

    def draw(self, slot: TransformersSlot) -> tuple[int, Distribution | None]:
        """The next token as this model would draft it, now pending, and what it was drawn from.

        None in place of the distribution where the slot is greedy. Not counted as a pass.
        """
        asked = Asked(slot.tokens, NO_DRAFT, slot.sampling)
        token, q = draft_token(self.logits_after(slot)[None], asked)
        self.commit(slot, (), token)
        return token, q

    def _forward(self, feeds: Sequence[_Feed], logits: int) -> tuple[Tensor, Tensor]:
        """Run the packed rows; `logits` is how many rows, from the end, get logits (0 = all).

        Returns what Network does.
        """
        tokens = [token for feed in feeds for token in feed.tokens]
        positions = [feed.cache.length + depth for feed in feeds for depth in depths(feed.draft)]
        return self.network(tokens, positions, self._blocks(feeds), logits)

    def _blocks(self, feeds: Sequence[_Feed]) -> list[Block]:
        blocks: list[Block] = []
        start = 0
        for feed in feeds:
            rows = slice(start, start + len(feed.tokens))
            mask = block_mask(feed.draft, self.device)
            blocks.append(Block(feed.cache, rows, mask))
            start = rows.stop
        return blocks


def _doubting(logits: Tensor, asked: Asked, verdict: Verdict, tolerance: float) -> Verdict:
    """The verdict on a block, without the choices that another shape might make differently."""
    close = near_ties(logits, asked, tolerance)
    choices = zip(verdict.choices, close, strict=True)
    return replace(verdict, choices=tuple(UNDECIDED if near else c for c, near in choices))


def _padded(verdict: Verdict, draft: Draft, doubt: bool) -> Verdict:
    """A verdict on the whole draft, of which the pass may have been fed nothing."""
    missing = 1 + len(draft) - len(verdict.choices)
    choices = verdict.choices + (UNDECIDED,) * missing
    return replace(verdict, choices=choices, arbitrated=verdict.arbitrated or doubt)


def _undecided(slot: TransformersSlot, path: Sequence[int], pending: int) -> bool:
    """Whether the new pending token is a draft node whose own choice stayed undecided."""
    last = path[-1] if path else ROOT
    # Nodes that the pass was not fed have no choice, and nothing is known against them.
    nodes = zip(slot.draft.tokens, slot.draft.parents, slot.verdict.choices[1:], strict=False)
    return (pending, last, UNDECIDED) in nodes


def _lean(folder: Path, config: Any, device: str, dtype: str) -> Network:
    from apply_server.kernels.linear import float_linear

    linear = int8_linear() if dtype == support.INT8 else float_linear(dtype)
    return lean.LeanNetwork(lean.Shape.of(config), dtype, linear, lean.checkpoint(folder))


def _stock(folder: Path, config: Any, device: str, dtype: str) -> Network:
    attention.register()
    model = support.stock_model(
        folder, config=config, dtype=dtype, attn_implementation=attention.NAME
    )
    model.to(device).eval().requires_grad_(False)
    pack_linears(model)
    network = StockNetwork(model)
    support.check_rollback(model, TransformersTarget(network, support.context_length(config)))
    return network
