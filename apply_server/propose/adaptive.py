"""Draft length by region of the file: longer while drafts hit, shorter after rejections.

Must not know where the drafts come from.
"""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.decode.draft import Draft, Proposer, Step


class AdaptiveLimit:
    """Narrows the limit of the proposer inside: a fully accepted draft doubles it, a rejection
    sets it to twice what was accepted. An edited region so costs few wasted tokens, and a copied
    one soon drafts in chunks of `longest`.
    """

    def __init__(self, inner: Proposer, shortest: int, longest: int) -> None:
        self._inner = inner
        self._shortest = shortest
        self._longest = longest
        self._current = longest

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        """The inner proposer's draft, at most as long as the current region deserves."""
        return self._inner.propose(context, min(limit, self._current))

    def observe(self, step: Step) -> None:
        """Grow after a hit, shrink after a rejection."""
        if len(step.draft):
            self._current = self._next(len(step.path), len(step.draft))
        self._inner.observe(step)

    def _next(self, accepted: int, drafted: int) -> int:
        wanted = 2 * self._current if accepted == drafted else 2 * accepted
        return min(max(wanted, self._shortest), self._longest)
