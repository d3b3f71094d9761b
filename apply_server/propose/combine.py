"""Several continuations → one draft: the tree with the most expected tokens for its cost.

Must not know how continuations are found, nor what a token means.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise

from apply_server.decode.draft import ROOT, Draft, Step
from apply_server.decode.speedup import CostTable
from apply_server.propose.continuation import Continuation, Source
from apply_server.propose.survival import Survival, bucket
from apply_server.propose.tree import DraftTree


class TreeProposer:
    """Drafts the continuations of all sources as one tree of at most `longest` nodes.

    Of two continuations with the same next token the likelier one is kept. The others' chains are
    merged into a trie, best first: a node's reach is the product of the survival rates on its
    path, and at the root also of the likelier branches' failures. No more than `branches` are
    drafted: with one, a chain.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        cost: CostTable,
        survival: Survival,
        longest: int,
        branches: int | None = None,
    ) -> None:
        self._sources = sources
        self._survival = survival
        self._branches = branches
        self._origins: list[tuple[str, int]] = []
        costs = [cost.cost(k) for k in range(1, longest + 2)]
        self._increments = [more - less for less, more in pairwise(costs)]

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        """The best tree of at most `limit` nodes."""
        continuations = (c for s in self._sources for c in s.continuations(context))
        found = self._distinct(continuations)[: self._branches]
        tree = DraftTree(self._increments[: max(limit, 0)])
        origins = self._grow(tree, found)
        order = tree.main_first()
        self._origins = [origins[node] for node in order]
        score = max((self._rate(continuation) for continuation in found), default=0.0)
        return tree.draft(order, [_source(origin) for origin, _ in self._origins], score)

    def observe(self, step: Step) -> None:
        """Learn which continuations were right, and let the sources follow the output.

        A branch was tried only where the likelier ones beside it, which come before it, failed.
        """
        chosen = dict(zip((ROOT, *step.path), (*step.path, len(step.draft)), strict=True))
        for node, (parent, origin) in enumerate(
            zip(step.draft.parents, self._origins, strict=False)
        ):
            choice = chosen.get(parent, ROOT)
            if node <= choice:
                self._survival.record(*origin, right=node == choice)
        for source in self._sources:
            source.observe(step.emitted)

    def _distinct(self, found: Iterable[Continuation]) -> list[Continuation]:
        """The likeliest continuation for each next token, likeliest first."""
        best: dict[int, tuple[float, Continuation]] = {}
        for continuation in found:
            rate = self._rate(continuation)
            token = continuation.next
            if token >= 0 and (token not in best or rate > best[token][0]):
                best[token] = (rate, continuation)
        return [c for _, c in sorted(best.values(), key=lambda rated: -rated[0])]

    def _rate(self, continuation: Continuation) -> float:
        return self._survival.rate(continuation.source, continuation.match)

    def _grow(self, tree: DraftTree, found: Sequence[Continuation]) -> list[tuple[str, int]]:
        """Add the nodes that are worth their cost; returns the (source, match) of each."""
        origins: list[tuple[str, int]] = []
        rates = [self._survival.rates(continuation.source) for continuation in found]
        heap: list[tuple[float, int, int, int, int]] = []
        left = 1.0
        for index, continuation in enumerate(found):
            rate = rates[index][bucket(continuation.match)]
            heappush(heap, (-left * rate, index, continuation.at, continuation.match, ROOT))
            left *= 1.0 - rate
        while heap and tree.is_worth(-heap[0][0]):
            reach, index, at, match, parent = heappop(heap)
            text = found[index].text
            node = tree.child(parent, text[at])
            if node is None:
                node = tree.add(parent, text[at], -reach)
                origins.append((found[index].source, match))
            at, match = at + 1, match + 1
            if at < len(text) and text[at] >= 0:
                heappush(heap, (reach * rates[index][bucket(match)], index, at, match, node))
        return origins


def _source(origin: str) -> str:
    """What reports call it: only the merge is more than a copy."""
    return "merge" if origin.startswith("merged") else "copy"
