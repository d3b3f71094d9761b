"""Specifications → proposers: the one place that knows how they are put together."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from apply_server.decode.draft import NoDraft, Proposer
from apply_server.decode.speedup import CostTable
from apply_server.errors import InvalidRequest
from apply_server.propose.adaptive import AdaptiveLimit
from apply_server.propose.combine import TreeProposer
from apply_server.propose.continuation import Source
from apply_server.propose.copy import Pointer
from apply_server.propose.lookup import PromptLookup
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
    holds further files. `prompt` is the whole prompt, which only hf-lookup reads.
    """

    original: tuple[int, ...] = ()
    snippet: tuple[int, ...] = ()
    merged: tuple[int, ...] | None = None
    other: tuple[tuple[int, ...], ...] = ()
    prompt: tuple[int, ...] = ()

    @property
    def texts(self) -> tuple[tuple[int, ...], ...]:
        """What may be copied in any order."""
        return (self.original, self.snippet, *self.other)


ProposerFactory = Callable[[DraftSources, CostTable], Proposer]
"""Makes one session's proposer."""

_LOOKUP = re.compile(r"hf-lookup(?::k=([1-9]\d*),n=([1-9]\d*))?")


def parse_proposer(spec: str) -> ProposerFactory:
    """The factory for auto, suffix, none, hf-lookup or hf-lookup:k=10,n=2.

    Raises InvalidRequest for anything else.
    """
    named = {"auto": _auto, "suffix": _suffix, "none": _none}.get(spec)
    if named is not None:
        return named
    lookup = _LOOKUP.fullmatch(spec)
    if lookup is None:
        raise InvalidRequest(
            f"{spec!r} is no proposer. Use auto, suffix, none or hf-lookup:k=10,n=2."
        )
    k, n = (int(number) for number in lookup.groups(default="0"))
    return _lookup(k or 10, n or 2)


def build_proposer(sources: DraftSources, cost: CostTable, kind: str = "auto") -> Proposer:
    """A fresh proposer for one session. Raises InvalidRequest for an unknown `kind`."""
    return parse_proposer(kind)(sources, cost)


def _auto(sources: DraftSources, cost: CostTable) -> Proposer:
    followed = {"merged": sources.merged, "original": sources.original}
    found: list[Source] = [
        *(Pointer(text, name) for name, text in followed.items() if text is not None),
        SuffixSource(sources.texts),
        RecentOccurrences(sources.texts),
    ]
    return TreeProposer(found, cost, Survival(PRIORS), _longest(cost))


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
