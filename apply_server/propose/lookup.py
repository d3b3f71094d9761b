"""Prompt lookup as transformers' `PromptLookupCandidateGenerator` does it, for comparison.

The leftmost occurrence, in prompt and output, of the longest n-gram of at most `n` tokens that
ends the output, and the `k` tokens after it. Must not know any other proposer.
"""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.decode.draft import NO_DRAFT, Draft, Step


class PromptLookup:
    """See the module. transformers' defaults are k=10, n=2; both are at least 1."""

    def __init__(self, prompt: Sequence[int], k: int = 10, n: int = 2) -> None:
        self._k = k
        self._n = n
        self._tokens: list[int] = []
        self._leftmost: dict[tuple[int, ...], int] = {}
        self._extend(prompt)

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        """The `k` tokens after the leftmost occurrence of the longest n-gram that has one."""
        for size in range(min(self._n, len(self._tokens) - 1), 0, -1):
            start = self._leftmost.get(tuple(self._tokens[-size:]))
            if start is not None:
                tokens = self._tokens[start : start + min(self._k, limit)]
                return Draft.chain(tokens, score=1.0, source="copy")
        return NO_DRAFT

    def observe(self, step: Step) -> None:
        """Index what was emitted."""
        self._extend(step.emitted)

    def _extend(self, tokens: Sequence[int]) -> None:
        """Index the n-grams before each token: one that ends the text has no continuation yet."""
        for token in tokens:
            end = len(self._tokens)
            for size in range(1, min(self._n, end) + 1):
                self._leftmost.setdefault(tuple(self._tokens[end - size :]), end)
            self._tokens.append(token)
