"""Copying where it is confident, other proposers where the text is novel.

Must not know what the others are.
"""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.decode.draft import NO_DRAFT, ROOT, Distribution, Draft, Proposer, Step

CONFIDENT = 0.5
"""Where the likeliest copy is more often right than wrong, nobody else is asked."""


def confident(copied: Draft) -> bool:
    """Whether this copy is drafted alone."""
    return len(copied) > 0 and copied.score >= CONFIDENT


class NovelText:
    """`copying`, helped by `others` where its first token is less likely than CONFIDENT.

    All drafts then make one tree, the others' first; each proposer hears of its own part of it.
    """

    def __init__(self, copying: Proposer, others: Sequence[Proposer]) -> None:
        self._proposers = (*others, copying)
        self._drafts = [NO_DRAFT for _ in self._proposers]

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        """One draft of at most `limit` nodes."""
        *others, copying = self._proposers
        copied = copying.propose(context, limit)
        if confident(copied):
            self._drafts = [*(NO_DRAFT for _ in others), copied]
            return copied
        room = limit
        self._drafts = []
        for other in others:
            self._drafts.append(other.propose(context, room).head(max(room, 0)))
            room -= len(self._drafts[-1])
        self._drafts.append(copied.head(max(room, 0)))
        return graft(self._drafts)

    def observe(self, step: Step) -> None:
        """Tell each proposer what became of its own draft."""
        for proposer, draft in zip(self._proposers, self._drafts, strict=True):
            path = _followed(draft, step.emitted[:-1])
            proposer.observe(Step(draft, path, step.emitted, step.features))


def graft(drafts: Sequence[Draft]) -> Draft:
    """One tree of all nodes of `drafts`; equal paths become one, the first draft's.

    A node that was drawn from a distribution stays drawn: that it is also drafted otherwise tells
    nothing about the draw. Only one of the drafts may hold drawn nodes, as siblings have to be
    drawn without replacement. Earlier drafts come first, so a first chain stays the main one.
    """
    tokens: list[int] = []
    parents: list[int] = []
    sources: list[str] = []
    q: list[Distribution | None] = []
    known: dict[tuple[int, int], int] = {}
    for draft in drafts:
        moved = {ROOT: ROOT}
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
            edge = (moved[parent], token)
            if edge not in known:
                known[edge] = len(tokens)
                tokens.append(token)
                parents.append(edge[0])
                sources.append(draft.sources[node] if draft.sources else "")
                q.append(draft.drawn_from(node))
            moved[node] = known[edge]
    score = max((draft.score for draft in drafts), default=0.0)
    return Draft(tuple(tokens), tuple(parents), score, tuple(sources), tuple(q))


def _followed(draft: Draft, emitted: Sequence[int]) -> tuple[int, ...]:
    """The draft's nodes that `emitted` follows, root first."""
    child = {
        (parent, token): node
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True))
    }
    path: list[int] = []
    for token in emitted:
        node = child.get((path[-1] if path else ROOT, token))
        if node is None:
            break
        path.append(node)
    return tuple(path)
