"""Where each token occurs in a text: four bytes per token, built by one stable sort."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence


class Positions:
    """The ascending positions of every token of `text`."""

    def __init__(self, text: Sequence[int]) -> None:
        self._text = text
        self._order = array("i", sorted(range(len(text)), key=text.__getitem__))

    def after(self, token: int, start: int) -> Iterator[int]:
        """The positions of `token` from `start` on, nearest first."""
        order, text = self._order, self._text
        found = bisect_left(order, (token, start), key=lambda at: (text[at], at))
        while found < len(order) and text[order[found]] == token:
            yield order[found]
            found += 1
