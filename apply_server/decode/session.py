"""One request's tokens, limits, cancel flag and counters.

Must not know the target's kind or the text: where the output ends is a `StopRule`'s business.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Event
from typing import Generic, Protocol, TypeVar

from apply_server.decode.draft import Draft, Features, Proposer, Step
from apply_server.decode.target import Verdict
from apply_server.errors import Cancelled

SlotT = TypeVar("SlotT")


class StopRule(Protocol):
    """Says where the output ends, one token at a time, in order."""

    def ends(self, token: int) -> bool:
        """True where the output ends with this token (which is still part of it)."""
        ...


class Finish(StrEnum):
    """Why a session ended."""

    STOPPED = "stopped"
    LIMIT = "limit"


@dataclass(slots=True)
class Counters:
    """What one session cost; the raw numbers of every report.

    Times are seconds of wall clock. `drafted_tokens` counts what was fed to the target, accepted
    or not; `accepted_tokens` what of it went into the output; `drafted_by` and `accepted_by` divide
    the two by source (`Draft.sources`). `cached_tokens` of the prompt needed no prefill.
    `arbitrations` counts passes over one token that decided a near-tie. `blocks` holds, for every
    target pass (prefill excluded), how many tokens it was fed.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    target_passes: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    arbitrations: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    propose_s: float = 0.0
    blocks: list[int] = field(default_factory=list)
    drafted_by: dict[str, int] = field(default_factory=dict)
    accepted_by: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Session(Generic[SlotT]):
    """A decoding in progress. `slot` belongs to the target; `limit` caps the output, in tokens."""

    slot: SlotT
    proposer: Proposer
    stop: StopRule
    limit: int
    cancel: Event = field(default_factory=Event)
    counters: Counters = field(default_factory=Counters)
    output: list[int] = field(default_factory=list)
    finish: Finish | None = None
    clock: Callable[[], float] = time.perf_counter

    def check_cancelled(self) -> None:
        """Raise Cancelled if the user asked for it."""
        check_cancelled(self.cancel)

    def draft(self) -> Draft:
        """Ask the proposer, leaving room for the target's own token. Raises Cancelled.

        A draft over the limit is cut here, whoever made it: the slot holds no more than the limit.
        """
        self.check_cancelled()
        started = self.clock()
        room = self.limit - len(self.output) - 1
        draft = self.proposer.propose(self.output, room).head(room)
        self.counters.propose_s += self.clock() - started
        return draft

    def take(
        self, draft: Draft, path: Sequence[int], token: int, features: Sequence[Features] = ()
    ) -> Step:
        """Append the accepted tokens and the target's own; the end may come in between."""
        emitted: list[int] = []
        for candidate in (*(draft.tokens[i] for i in path), token):
            emitted.append(candidate)
            if self._ends(candidate, len(self.output) + len(emitted)):
                break
        self.output += emitted
        kept = tuple(path[: len(emitted)])
        self._count(draft, kept, emitted)
        return Step(draft, kept, tuple(emitted), tuple(features[: len(emitted)]))

    def count(self, verdict: Verdict) -> None:
        """Count what near-ties cost."""
        self.counters.arbitrations += verdict.arbitrated
        if verdict.repeated:
            self.counters.target_passes += 1
            self.counters.blocks.append(1)

    def observe(self, step: Step) -> None:
        """Tell the proposer what became of its draft."""
        started = self.clock()
        self.proposer.observe(step)
        self.counters.propose_s += self.clock() - started

    def _ends(self, token: int, length: int) -> bool:
        if self.stop.ends(token):
            self.finish = Finish.STOPPED
        elif length >= self.limit:
            self.finish = Finish.LIMIT
        return self.finish is not None

    def _count(self, draft: Draft, path: tuple[int, ...], emitted: Sequence[int]) -> None:
        self.counters.target_passes += 1
        self.counters.blocks.append(1 + len(draft))
        self.counters.drafted_tokens += len(draft)
        self.counters.accepted_tokens += len(path)
        self.counters.output_tokens += len(emitted)
        _count_by(self.counters.drafted_by, draft.sources)
        _count_by(self.counters.accepted_by, [draft.sources[i] for i in path if draft.sources])


def _count_by(counts: dict[str, int], sources: Sequence[str]) -> None:
    for source in sources:
        counts[source] = counts.get(source, 0) + 1


def check_cancelled(cancel: Event) -> None:
    """Raise Cancelled if the user asked for it."""
    if cancel.is_set():
        raise Cancelled("Cancelled. Nothing was changed.")
