"""A smaller model of the same tokenizer as the proposer: it writes, the target checks.

Must not know how a model computes, nor who else drafts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Generic, Protocol, TypeVar

from apply_server.decode.draft import NO_DRAFT, Distribution, Draft, Step
from apply_server.decode.sampling import Sampling
from apply_server.errors import DocumentTooLong

SlotT = TypeVar("SlotT")

# So many chunks of a prompt are read for one draft at most: a cancelled request waits for them.
_CHUNKS = 4


class DraftingModel(Protocol[SlotT]):
    """What is asked of the model; a target has it."""

    def open(self, prompt: Sequence[int], room: int, sampling: Sampling) -> SlotT:
        """Reserve memory. Raises DocumentTooLong where prompt and room don't fit."""
        ...

    def prefill(self, slot: SlotT) -> Iterator[int]:
        """Compute what is missing of all but the last token, chunk by chunk."""
        ...

    def sync(self, slot: SlotT, tokens: Sequence[int]) -> None:
        """Make `tokens` the sequence; what agrees with it stays computed."""
        ...

    def draw(self, slot: SlotT) -> tuple[int, Distribution | None]:
        """The next token, and what it was drawn from (None: a point mass)."""
        ...


class DraftModel(Generic[SlotT]):
    """Drafts chains of at most `longest` tokens after `prompt` and the output.

    The prompt is read when a draft is first asked for. A model whose context is too short for
    prompt and `room` drafts nothing.
    """

    def __init__(
        self,
        model: DraftingModel[SlotT],
        prompt: Sequence[int],
        room: int,
        sampling: Sampling,
    ) -> None:
        self._model = model
        self._tokens = list(prompt)
        self._slot = _open(model, prompt, room, sampling)

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        """A chain as the model would go on, of `limit` tokens."""
        if self._slot is None or limit < 1 or not self._caught_up(self._slot):
            return NO_DRAFT
        tokens, q = zip(*(self._model.draw(self._slot) for _ in range(limit)), strict=True)
        return Draft.chain(tokens, score=1.0, source="model", q=q)

    def observe(self, step: Step) -> None:
        """Roll the cache back to what was accepted; the rest is read at the next draft."""
        self._tokens += step.emitted
        if self._slot is not None:
            self._model.sync(self._slot, self._tokens)

    def _caught_up(self, slot: SlotT) -> bool:
        read = list(islice(self._model.prefill(slot), _CHUNKS))
        return not read or read[-1] == len(self._tokens) - 1


def _open(
    model: DraftingModel[SlotT], prompt: Sequence[int], room: int, sampling: Sampling
) -> SlotT | None:
    try:
        return model.open(prompt, room, sampling)
    except DocumentTooLong:
        return None
