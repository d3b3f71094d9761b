"""What a proposer hands to the target, and what it hears back.

A draft is always a tree, given by parent indices; a chain is the common tree and "no draft" is the
empty one, so that nothing downstream needs a second code path. This module must not know who drafts
or who verifies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

ROOT = -1

Distribution: TypeAlias = Sequence[float]
"""A probability for each token of the vocabulary; in practice a tensor, which the loop never reads.
"""
Features: TypeAlias = Sequence[float]
"""What a model's output matrix is given for one token; in practice a tensor [hidden] as well."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Candidate tokens after the pending one.

    `tokens[i]` follows `tokens[parents[i]]`, or the pending token where `parents[i]` is ROOT;
    `parents[i] < i`, so the order of the nodes is already topological. Children of one node carry
    different tokens. `score` is how likely the first token is (0 to 1) by the proposer's reckoning;
    `sources[i]` says in reports where node `i` comes from.

    `q[i]` is the distribution that node `i` was drawn from, None where it was not drawn: a copy, or
    a model's likeliest token, is a point mass. An empty `q` is None for all. Of siblings that were
    drawn, each comes from what the earlier ones left: they are drawn without replacement.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    score: float = 0.0
    sources: tuple[str, ...] = ()
    q: tuple[Distribution | None, ...] = field(default=(), compare=False, repr=False)

    @staticmethod
    def chain(
        tokens: Sequence[int],
        *,
        score: float = 0.0,
        source: str = "",
        q: Sequence[Distribution | None] = (),
    ) -> Draft:
        """A draft without branches: each token follows the one before it."""
        parents = tuple(range(-1, len(tokens) - 1))
        return Draft(tuple(tokens), parents, score, (source,) * len(tokens), tuple(q))

    @property
    def is_chain(self) -> bool:
        """True where each node follows the node before it."""
        return all(parent == index - 1 for index, parent in enumerate(self.parents))

    def head(self, count: int) -> Draft:
        """The first `count` nodes, which are a draft too because parents come first."""
        if count >= len(self):
            return self
        return Draft(
            self.tokens[:count],
            self.parents[:count],
            self.score,
            self.sources[:count],
            self.q[:count],
        )

    def drawn_from(self, node: int) -> Distribution | None:
        """The distribution that the node was drawn from, None for a point mass."""
        return self.q[node] if self.q else None

    def __len__(self) -> int:
        return len(self.tokens)


NO_DRAFT = Draft()


@dataclass(frozen=True, slots=True)
class Step:
    """One verified step of one session, as its proposer hears of it.

    `path` holds the indices of the accepted draft nodes, root first. `emitted` holds the tokens
    that this step appended to the output: the accepted ones and then the target's own next token
    (a correction or the bonus token), cut where the output ended. `features[i]` is the target's
    hidden state from which it chose `emitted[i]`; empty where the target can't tell.
    """

    draft: Draft
    path: tuple[int, ...]
    emitted: tuple[int, ...]
    features: tuple[Features, ...] = field(default=(), compare=False, repr=False)


class Proposer(Protocol):
    """Drafts the continuation of one session's output. One proposer serves one session."""

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        """Draft at most `limit` tokens to follow `context`, the session's output so far."""
        ...

    def observe(self, step: Step) -> None:
        """Learn what became of the draft; called once after every step, in order."""
        ...


class NoDraft:
    """Plain decoding: every draft is empty, so every pass emits one token."""

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        """The empty draft."""
        return NO_DRAFT

    def observe(self, step: Step) -> None:
        """Nothing to learn."""
