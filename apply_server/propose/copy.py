"""A monotone pointer into a text that the output mostly copies.

Follows the output through the text; where the output departs, the pointer waits at the departure
until the output's end is found again, nearest after it. Must not know who else drafts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from apply_server.propose.continuation import Continuation, agreement
from apply_server.propose.positions import Positions

IN_SYNC = 8
"""So many tokens in a row are found again only where the output really is."""

NEAREST = 16
"""Occurrences looked at after a departure; those farther off are hardly ever meant."""

BRANCHES = 3

OPENING_SHARE = 8
"""Files have about as many edits whatever their length, so a long one is trusted for longer
before its first: like one that was copied for an eighth of it already."""


class Pointer:
    """The place in `text` where the output is, or after a departure the likely ones.

    Its continuations are called `name` while the output copies, `name`-resync where the output's
    end is found again, and `name`-replace where as many tokens were replaced as came instead.
    An insertion or deletion needs no guess of its own: the next resync finds its end.
    """

    def __init__(self, text: Sequence[int], name: str) -> None:
        self._text = text
        self._name = name
        self._positions = Positions(text)
        self._at = 0
        self._match = len(text) // OPENING_SHARE
        self._departed = 0

    def continuations(self, context: Sequence[int]) -> Iterator[Continuation]:
        """Where the pointer is; after a departure, where it may be."""
        if self._departed:
            found = self._resync(context)
            if not found or found[0].match < IN_SYNC:
                skipped = self._at + self._departed
                replace = Continuation(self._text, skipped, self._departed, f"{self._name}-replace")
                yield from (*found, replace)
                return
            self._at, self._match, self._departed = found[0].at, found[0].match, 0
        yield Continuation(self._text, self._at, self._match, self._name)

    def observe(self, emitted: Sequence[int]) -> None:
        """Advance while the output copies; wait at the first token where it doesn't."""
        agreed = 0
        if not self._departed:
            expected = self._text[self._at : self._at + len(emitted)]
            pairs = zip(emitted, expected, strict=False)
            agreed = next((i for i, (a, b) in enumerate(pairs) if a != b), len(expected))
            self._at += agreed
            self._match += agreed
        self._departed += len(emitted) - agreed

    def _resync(self, context: Sequence[int]) -> list[Continuation]:
        """Where the output's end occurs after the pointer: longest match first, then nearest."""
        nearest = islice(self._positions.after(context[-1], self._at), NEAREST)
        found = [
            Continuation(
                self._text, at + 1, agreement(self._text, at, context), f"{self._name}-resync"
            )
            for at in nearest
        ]
        return sorted(found, key=lambda continuation: -continuation.match)[:BRANCHES]
