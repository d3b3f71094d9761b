"""What a proposer hands to the target, and what it hears back.

A draft is always a tree, given by parent indices; a chain is the common tree and "no draft" is the
empty one, so that nothing downstream needs a second code path. This module must not know who drafts
or who verifies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

ROOT = -1


@dataclass(frozen=True, slots=True)
class Draft:
    """Candidate tokens after the pending one.

    `tokens[i]` follows `tokens[parents[i]]`, or the pending token where `parents[i]` is ROOT;
    `parents[i] < i`, so the order of the nodes is already topological. Children of one node carry
    different tokens. `score` is the proposer's own trust (for example the length of the match it
    drafts from); `source` names the proposer in reports.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    score: float = 0.0
    source: str = ""

    @staticmethod
    def chain(tokens: Sequence[int], *, score: float = 0.0, source: str = "") -> Draft:
        """A draft without branches: each token follows the one before it."""
        return Draft(tuple(tokens), tuple(range(-1, len(tokens) - 1)), score, source)

    @property
    def is_chain(self) -> bool:
        """True where each node follows the node before it."""
        return all(parent == index - 1 for index, parent in enumerate(self.parents))

    def head(self, count: int) -> Draft:
        """The first `count` nodes, which are a draft too because parents come first."""
        if count >= len(self):
            return self
        return Draft(self.tokens[:count], self.parents[:count], self.score, self.source)

    def __len__(self) -> int:
        return len(self.tokens)


NO_DRAFT = Draft()


@dataclass(frozen=True, slots=True)
class Step:
    """One verified step of one session, as its proposer hears of it.

    `path` holds the indices of the accepted draft nodes, root first. `emitted` holds the tokens
    that this step appended to the output: the accepted ones and then the target's own next token
    (a correction or the bonus token), cut where the output ended.
    """

    draft: Draft
    path: tuple[int, ...]
    emitted: tuple[int, ...]


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
