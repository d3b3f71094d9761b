"""What requests cost and how they ended, by class, for people who want to know where time goes.

Must not know engines, editors or documents.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

# Percentiles are over the latest requests: a server runs for days, and only lately matters.
_KEPT = 1000
_SIZES = (200, 1000, 5000)


@dataclass(frozen=True, slots=True)
class RequestClass:
    """Requests worth comparing: the edit's dialect ("instruction" without a snippet) and the size
    of the file.
    """

    dialect: str
    size: str

    @classmethod
    def of(cls, dialect: str, lines: int) -> RequestClass:
        """The class of a request on a file of so many lines."""
        size = next((f"<={size}" for size in _SIZES if lines <= size), f">{_SIZES[-1]}")
        return cls(dialect, f"{size} lines")


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One finished request.

    `state` is "applied", "unchanged" or an error's code. Tokens and passes as in the engine's
    report. Times in milliseconds from the request; None where that didn't come.
    """

    state: str
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    output_tokens: int = 0
    target_passes: int = 0
    preview_ms: float | None = None
    verified_ms: float | None = None
    last_ms: float | None = None


@dataclass(slots=True)
class Metrics:
    """Records by class."""

    _states: dict[RequestClass, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _records: dict[RequestClass, deque[RequestRecord]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=_KEPT))
    )

    def add(self, of: RequestClass, record: RequestRecord) -> None:
        """Count a request that has ended."""
        self._states[of][record.state] += 1
        self._records[of].append(record)

    def to_json(self) -> dict[str, object]:
        """`{"classes": [{dialect, size, states, acceptanceRate, tokensPerPass, previewMs, …}]}`."""
        return {"classes": [self._class_json(of) for of in self._states]}

    def _class_json(self, of: RequestClass) -> dict[str, object]:
        records = self._records[of]
        accepted = sum(record.accepted_tokens for record in records)
        drafted = sum(record.drafted_tokens for record in records)
        output = sum(record.output_tokens for record in records)
        passes = sum(record.target_passes for record in records)
        return {
            "dialect": of.dialect,
            "size": of.size,
            "states": dict(self._states[of]),
            "acceptanceRate": round(accepted / drafted, 4) if drafted else None,
            "tokensPerPass": round(output / passes, 3) if passes else None,
            "previewMs": percentiles(record.preview_ms for record in records),
            "verifiedMs": percentiles(record.verified_ms for record in records),
            "lastMs": percentiles(record.last_ms for record in records),
        }


def percentiles(values: Iterable[float | None]) -> dict[str, float] | None:
    """p50 and p95 by nearest rank; None without values."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    ranks = {"p50": 50, "p95": 95}
    return {name: round(known[-(-rank * len(known) // 100) - 1], 1) for name, rank in ranks.items()}
