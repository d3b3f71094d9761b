"""How likely a continuation's next token is right, learned while drafting.

Must not know where continuations come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

BUCKETS = 12
PRIOR_FAILURES = 1.0
PRIOR_TRIALS = 8.0

UNSURE = 0.97
"""Rates below this are guesses; above it the output copies."""

CALIBRATION_TRIALS = 4.0
"""As many guesses that came true as foreseen weigh as much as a session's own record."""


def bucket(match: int) -> int:
    """Match lengths 0, 1, 2–3, 4–7, … share their statistics."""
    return min(match.bit_length(), BUCKETS - 1)


class Survival:
    """P(next token is right | source, match length), one session's counts over a prior.

    A prior weighs as much as one failure at its own rate, so a file that departs more often than
    most, or less, soon has its own rates, and one failure about doubles a small hazard.

    Where guesses come true more seldom than foreseen, all of them are lowered by as much: a novel
    text refutes one kind of guess after the other, and each would have to be learned by itself.
    Raising them where more come true was tried as well, and wasted more than it won.
    """

    def __init__(self, priors: Mapping[str, Sequence[float]]) -> None:
        self._rates = {source: list(rates) for source, rates in priors.items()}
        self._trials = {
            source: [max(PRIOR_FAILURES / (1.0 - rate), PRIOR_TRIALS) for rate in rates]
            for source, rates in priors.items()
        }
        self._foreseen = self._came_true = CALIBRATION_TRIALS

    def rates(self, source: str) -> Sequence[float]:
        """The rate for each bucket of match lengths."""
        return [self._calibrated(rate) for rate in self._rates[source]]

    def rate(self, source: str, match: int) -> float:
        """The rate at this match length."""
        return self._calibrated(self._rates[source][bucket(match)])

    def record(self, source: str, match: int, right: bool) -> None:
        """One more trial at this match length."""
        rates, trials, at = self._rates[source], self._trials[source], bucket(match)
        if rates[at] < UNSURE:
            self._foreseen += rates[at]
            self._came_true += right
        trials[at] += 1.0
        rates[at] += (right - rates[at]) / trials[at]

    def _calibrated(self, rate: float) -> float:
        return rate if rate >= UNSURE else rate * min(1.0, self._came_true / self._foreseen)
