"""Keys and values of prompts computed earlier, for the next prompt that begins alike.

An editor asks for edit after edit of one file, and a prompt begins with the file. Prompts are
computed in blocks of `chunk` tokens from their start, and only whole blocks are used again: what is
computed after them has the shape it would have had without them, hence the same bits. Must not know
models, or what a prompt says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from apply_server.target.kv_cache import KVCache


@dataclass(frozen=True, slots=True, eq=False)
class _Prefix:
    tokens: tuple[int, ...]
    cache: KVCache


@dataclass(slots=True)
class PrefixCache:
    """Holds at most `budget` bytes; what was used last stays longest."""

    chunk: int
    budget: int
    _kept: list[_Prefix] = field(default_factory=list, repr=False)

    def open(self, prompt: Sequence[int], capacity: int) -> KVCache:
        """A cache for `capacity` tokens that holds what is known of all but the last of `prompt`.

        That one is what the first pass starts from.
        """
        known, best = 0, None
        for prefix in self._kept:
            length = self._whole(_agreed(prefix.tokens, prompt[:-1]))
            if length > known:
                known, best = length, prefix
        if best is None:
            return KVCache(capacity)
        self._kept.sort(key=lambda prefix: prefix is best)  # stable: the used one comes last
        return best.cache.prefix(known, capacity)

    def keep(self, prompt: Sequence[int], cache: KVCache) -> None:
        """Copy the whole blocks that `cache` holds of `prompt`, as far as the budget goes."""
        done = min(cache.length, len(prompt) - 1)
        each = cache.prefix(1, 1).nbytes if done > 0 else 0
        length = self._whole(min(done, self.budget // each)) if each else 0
        tokens = tuple(prompt[:length])
        if not tokens or any(_agreed(kept.tokens, tokens) == length for kept in self._kept):
            return
        shorter = [kept for kept in self._kept if tokens[: len(kept.tokens)] != kept.tokens]
        self._kept = [*shorter, _Prefix(tokens, cache.prefix(length, length))]
        while sum(kept.cache.nbytes for kept in self._kept) > self.budget:
            del self._kept[0]

    def _whole(self, length: int) -> int:
        return length // self.chunk * self.chunk


def _agreed(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens the two have in common at their start."""
    pairs = zip(one, other, strict=False)
    shorter = min(len(one), len(other))
    return next((at for at, (a, b) in enumerate(pairs) if a != b), shorter)
