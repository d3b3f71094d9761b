"""Names → proposers: the one place that knows how they are put together."""

from __future__ import annotations

from dataclasses import dataclass

from apply_server.decode.draft import NoDraft, Proposer
from apply_server.decode.speedup import CostTable
from apply_server.propose.adaptive import AdaptiveLimit
from apply_server.propose.suffix import SuffixProposer

LONGEST_DRAFT = 512


@dataclass(frozen=True, slots=True)
class DraftSources:
    """The token sequences that an answer is likely to be made of.

    `original` is the file as it would appear in the answer, closing fence included; `merged` is
    the answer that the snippet's merge predicts, in the same form, where there is one; `other`
    holds further files.
    """

    original: tuple[int, ...] = ()
    snippet: tuple[int, ...] = ()
    merged: tuple[int, ...] | None = None
    other: tuple[tuple[int, ...], ...] = ()


def build_proposer(sources: DraftSources, cost: CostTable, kind: str = "auto") -> Proposer:
    """A fresh proposer for one session. `kind`: "auto", "suffix" or "none"."""
    if kind == "none":
        return NoDraft()
    texts = (sources.merged or (), sources.original, sources.snippet, *sources.other)
    return AdaptiveLimit(SuffixProposer(texts), shortest=4, longest=LONGEST_DRAFT)
