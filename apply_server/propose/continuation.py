"""A place to copy from, and what finds such places. Must not know how drafts are weighed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

LONGEST_AGREEMENT = 32
"""Matches are compared no further back: the trust in longer ones is the same."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """The output may go on with `text[at:]`, up to a negative token, which separates texts.

    `match` tokens before `at` agree with the output's last ones; the survival of a draft is
    learned per `source` and match length.
    """

    text: Sequence[int]
    at: int
    match: int
    source: str

    @property
    def next(self) -> int:
        """The token drafted first; negative where there is none."""
        return self.text[self.at] if self.at < len(self.text) else -1


class Source(Protocol):
    """Finds continuations of one session's output."""

    def continuations(self, context: Sequence[int]) -> Iterable[Continuation]:
        """Places to copy from after `context`, the session's output so far."""
        ...

    def observe(self, emitted: Sequence[int]) -> None:
        """The output grew by `emitted`."""
        ...


def agreement(text: Sequence[int], last: int, context: Sequence[int]) -> int:
    """How many tokens of `text`, from `last` backwards, equal the last ones of `context`."""
    most = min(LONGEST_AGREEMENT, last + 1, len(context))
    return next((i for i in range(most) if text[last - i] != context[-1 - i]), most)
