"""What followed the output's last token before, most recent first.

Where no long match is left, a few short ones with different next tokens are worth a branch each.
Must not know which text a token came from.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence

from apply_server.propose.continuation import Continuation, agreement

NONE = -1
VISITS = 16
BRANCHES = 4
SHARES = 6


class RecentOccurrences:
    """Earlier occurrences of the last token in `texts` and the output, 8 bytes per token.

    Longer matches come first, then more recent ones. The share of occurrences with the same next
    token tells how far to trust it, so a continuation is called recent-0 to recent-5 by its share,
    as in prediction by partial matching: those that matched less, or were ruled out, don't count.
    """

    def __init__(self, texts: Iterable[Sequence[int]]) -> None:
        self._text = array("i")
        self._previous = array("i")
        self._latest: dict[int, int] = {}
        for text in texts:
            self.observe(text)

    def continuations(self, context: Sequence[int]) -> Iterator[Continuation]:
        """One continuation for each of the likeliest next tokens."""
        seen = sorted(self._occurrences(context), key=lambda occurrence: -occurrence[0])
        followers = [self._text[at] for _, at in seen]
        best: dict[int, tuple[int, int]] = {}
        for token, occurrence in zip(followers, seen, strict=True):
            best.setdefault(token, occurrence)
        ruled_out: set[int] = set()
        for token, (match, at) in list(best.items())[:BRANCHES]:
            rivals = [
                other
                for other, (length, _) in zip(followers, seen, strict=True)
                if length >= match and other not in ruled_out
            ]
            share = rivals.count(token) * SHARES // (len(rivals) + 1)
            ruled_out.add(token)
            yield Continuation(self._text, at, match, f"recent-{share}")

    def observe(self, emitted: Sequence[int]) -> None:
        """Index what was emitted."""
        for token in emitted:
            self._previous.append(self._latest.get(token, NONE))
            self._latest[token] = len(self._text)
            self._text.append(token)

    def _occurrences(self, context: Sequence[int]) -> Iterator[tuple[int, int]]:
        """(match length, position after it) of the last token's most recent occurrences."""
        last = self._previous[-1] if context else NONE
        for _ in range(VISITS):
            if last == NONE:
                return
            yield agreement(self._text, last, context), last + 1
            last = self._previous[last]
