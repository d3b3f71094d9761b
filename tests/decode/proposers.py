"""Proposers for tests: perfect, wrong, hostile."""

from __future__ import annotations

import random
from collections.abc import Sequence

from apply_server.decode.draft import Draft, Step


class Oracle:
    """Drafts the known answer, `k` tokens at a time."""

    def __init__(self, answer: Sequence[int], k: int) -> None:
        self.answer = answer
        self.k = k

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        at = len(context)
        return Draft.chain(self.answer[at : at + min(self.k, limit)])

    def observe(self, step: Step) -> None:
        pass


class AlwaysWrong:
    """Drafts a token that is never in the answer."""

    def __init__(self, token: int, k: int = 4) -> None:
        self.token = token
        self.k = k

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        return Draft.chain([self.token] * min(self.k, limit))

    def observe(self, step: Step) -> None:
        pass


class Hostile:
    """Random trees, over the limit as often as not, partly right where it knows the answer."""

    def __init__(self, seed: int, vocabulary: int, answer: Sequence[int] = ()) -> None:
        self.random = random.Random(seed)
        self.vocabulary = vocabulary
        self.answer = answer

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        tokens: list[int] = []
        parents: list[int] = []
        taken: set[tuple[int, int]] = set()
        depth = {-1: 0}
        for _ in range(self.random.randint(0, 9)):
            parent = self.random.randrange(-1, len(tokens))
            at = len(context) + depth[parent]
            right = self.random.random() < 0.7 and at < len(self.answer)
            token = self.answer[at] if right else self.random.randrange(self.vocabulary)
            if (parent, token) in taken:
                continue
            taken.add((parent, token))
            depth[len(tokens)] = depth[parent] + 1
            tokens.append(token)
            parents.append(parent)
        return Draft(tuple(tokens), tuple(parents))

    def observe(self, step: Step) -> None:
        pass
