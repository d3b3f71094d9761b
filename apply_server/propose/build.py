"""Specifications → proposers: the one place that knows how they are put together."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from apply_server.decode.draft import NoDraft, Proposer
from apply_server.decode.sampling import Sampling
from apply_server.decode.speedup import CostTable
from apply_server.errors import InvalidRequest
from apply_server.propose.adaptive import AdaptiveLimit
from apply_server.propose.combine import TreeProposer
from apply_server.propose.continuation import Source
from apply_server.propose.copy import Pointer
from apply_server.propose.draft_model import DraftingModel, DraftModel
from apply_server.propose.heads import DraftHeads, HeadsProposer
from apply_server.propose.lookup import PromptLookup
from apply_server.propose.novel import NovelText
from apply_server.propose.priors import PRIORS
from apply_server.propose.recent import RecentOccurrences
from apply_server.propose.suffix import ChainProposer, SuffixSource
from apply_server.propose.survival import Survival

LONGEST_DRAFT = 512
LONGEST_PASS = 20.0
"""A cancelled request waits for the pass that is running: at most so many one-token passes. Cutting
a long copy there costs one pass in twenty."""


@dataclass(frozen=True, slots=True)
class DraftSources:
    """The token sequences that an answer is likely to be made of.

    `original` is the file as it would appear in the answer, closing fence included; `merged` is
    the answer that the snippet's merge predicts, in the same form, where there is one; `other`
    holds further texts, such as the instruction. `prompt` is the whole prompt and `room` the most
    tokens of an answer, which only hf-lookup and draft models need.
    """

    original: tuple[int, ...] = ()
    snippet: tuple[int, ...] = ()
    merged: tuple[int, ...] | None = None
    other: tuple[tuple[int, ...], ...] = ()
    prompt: tuple[int, ...] = ()
    room: int = 0

    @property
    def texts(self) -> tuple[tuple[int, ...], ...]:
        """What may be copied in any order."""
        return (self.original, self.snippet, *self.other)


ProposerFactory = Callable[[DraftSources, CostTable], Proposer]
"""Makes one session's proposer."""

SlotT = TypeVar("SlotT")

_LOOKUP = re.compile(r"hf-lookup(?::k=([1-9]\d*),n=([1-9]\d*))?")


NOVEL = ("model", "model:sample", "heads")
"""What may draft novel text, if it is there."""

LONGEST_NOVEL = 8
"""A draft model is right a few times in a row, and each of its tokens is a pass of its own."""

LONGEST_TREE = 32
"""The most guesses of draft heads; what a pass costs mostly says fewer."""


def parse_proposer(
    spec: str, novel: Mapping[str, ProposerFactory] = MappingProxyType({})
) -> ProposerFactory:
    """The factory for auto, chain, suffix, none, hf-lookup or hf-lookup:k=10,n=2, or one of these
    and then names of NOVEL: auto+model drafts by copying, and novel text by the draft model.

    `novel` has the factories of what is there. Raises InvalidRequest for anything else.
    """
    first, *names = spec.split("+")
    if first in NOVEL:
        first, names = "none", [first, *names]
    copying = _parse_copying(first)
    if any(name not in NOVEL for name in names) or len({*map(_kind, names)}) < len(names):
        raise _no_proposer(spec)
    missing = next((name for name in names if name not in novel), None)
    if missing is not None:
        raise InvalidRequest(f"Nothing is there for {missing} to draft with in {spec!r}.")
    others = [novel[name] for name in names]
    if not others:
        return copying
    return lambda sources, cost: NovelText(
        copying(sources, cost), [make(sources, cost) for make in others]
    )


def model_factory(model: DraftingModel[SlotT], sampling: Sampling) -> ProposerFactory:
    """Drafts novel text by a smaller model, which chooses by `sampling`."""
    return lambda sources, cost: AdaptiveLimit(
        DraftModel(model, sources.prompt, sources.room, sampling),
        shortest=1,
        longest=min(LONGEST_NOVEL, _longest(cost)),
    )


def heads_factory(heads: DraftHeads) -> ProposerFactory:
    """Drafts novel text by heads on the target's hidden state."""
    return lambda sources, cost: HeadsProposer(heads, cost, min(LONGEST_TREE, _longest(cost)))


def _kind(name: str) -> str:
    return name.partition(":")[0]


def _no_proposer(spec: str) -> InvalidRequest:
    return InvalidRequest(
        f"{spec!r} is no proposer. Use auto, chain, suffix, none or hf-lookup:k=10,n=2, "
        f"with + and {' or '.join(NOVEL)} for novel text (auto+model)."
    )


def _parse_copying(spec: str) -> ProposerFactory:
    named = {"auto": _auto, "chain": _chain, "suffix": _suffix, "none": _none}.get(spec)
    if named is not None:
        return named
    lookup = _LOOKUP.fullmatch(spec)
    if lookup is None:
        raise _no_proposer(spec)
    k, n = (int(number) for number in lookup.groups(default="0"))
    return _lookup(k or 10, n or 2)


def build_proposer(sources: DraftSources, cost: CostTable, kind: str = "auto") -> Proposer:
    """A fresh proposer for one session. Raises InvalidRequest for an unknown `kind`."""
    return parse_proposer(kind)(sources, cost)


def _auto(sources: DraftSources, cost: CostTable) -> Proposer:
    return TreeProposer(_copied(sources), cost, Survival(PRIORS), _longest(cost))


def _chain(sources: DraftSources, cost: CostTable) -> Proposer:
    return TreeProposer(_copied(sources), cost, Survival(PRIORS), _longest(cost), branches=1)


def _copied(sources: DraftSources) -> list[Source]:
    followed = {"merged": sources.merged, "original": sources.original}
    return [
        *(Pointer(text, name) for name, text in followed.items() if text is not None),
        SuffixSource(sources.texts),
        RecentOccurrences(sources.texts),
    ]


def _suffix(sources: DraftSources, cost: CostTable) -> Proposer:
    texts = (sources.merged or (), *sources.texts)
    return AdaptiveLimit(ChainProposer(SuffixSource(texts)), shortest=4, longest=_longest(cost))


def _none(sources: DraftSources, cost: CostTable) -> Proposer:
    return NoDraft()


def _longest(cost: CostTable) -> int:
    """The longest draft whose pass, the pending token included, is short enough to wait for."""
    return max(1, bisect_right(range(1, LONGEST_DRAFT + 2), LONGEST_PASS, key=cost.cost) - 1)


def _lookup(k: int, n: int) -> ProposerFactory:
    return lambda sources, cost: PromptLookup(sources.prompt, k, n)
