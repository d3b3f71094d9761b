"""A draft under construction: nodes, their cost, and what the target is expected to take of it.

Must not know where tokens come from.
"""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.decode.draft import ROOT, Draft

MOST_WASTE = 1.0
"""The waste that a draft may be expected to cost, in passes over one token: where drafts fail at a
constant rate, the best length is the one whose waste costs as much as one more pass."""


class DraftTree:
    """Grows node by node, the likeliest first.

    `increments[i]` is the cost of node `i`; a node's reach is the probability that the target
    gets to it.
    """

    def __init__(self, increments: Sequence[float]) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self._increments = increments
        self._children: dict[tuple[int, int], int] = {}
        self._expected = 1.0
        self._cost = 1.0
        self._waste = 0.0

    def is_worth(self, reach: float) -> bool:
        """Whether a node of this reach raises expected tokens per cost, within the waste."""
        if len(self.tokens) >= len(self._increments):
            return False
        increment = self._increments[len(self.tokens)]
        wasted = self._waste + (1.0 - reach) * increment
        return wasted <= MOST_WASTE and reach * self._cost >= increment * self._expected

    def child(self, parent: int, token: int) -> int | None:
        """The node with this token after `parent`, if there is one."""
        return self._children.get((parent, token))

    def add(self, parent: int, token: int, reach: float) -> int:
        """Add a node that isn't there yet; returns its index."""
        node = len(self.tokens)
        increment = self._increments[node]
        self._expected += reach
        self._cost += increment
        self._waste += (1.0 - reach) * increment
        self._children[parent, token] = node
        self.tokens.append(token)
        self.parents.append(parent)
        return node

    def main_first(self) -> list[int]:
        """The nodes' indices, those of the likeliest path first.

        A cache that keeps a path then mostly keeps a prefix, which is cheap.
        """
        main: list[int] = []
        for node, parent in enumerate(self.parents):
            if parent == (main[-1] if main else ROOT):
                main.append(node)
        if len(main) == len(self.parents):
            return main
        on_main = set(main)
        return main + [node for node in range(len(self.parents)) if node not in on_main]

    def draft(self, order: Sequence[int], sources: Sequence[str], score: float) -> Draft:
        """The tree as a draft, its nodes in this order; `sources` name them in the same order."""
        moved = {node: index for index, node in enumerate(order)}
        moved[ROOT] = ROOT
        tokens = tuple(self.tokens[node] for node in order)
        parents = tuple(moved[self.parents[node]] for node in order)
        return Draft(tokens, parents, score, tuple(sources))
