"""The whole program in one screen: propose, verify, accept, commit, observe.

Must not know tensors, text or threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from apply_server.decode.accept import accept
from apply_server.decode.draft import Step
from apply_server.decode.session import Session
from apply_server.decode.target import TargetModel

SlotT = TypeVar("SlotT")


def step(sessions: Sequence[Session[SlotT]], target: TargetModel[SlotT]) -> list[Step]:
    """Advance every session by one or more tokens at the price of ONE target pass."""
    drafts = [session.draft() for session in sessions]
    batch = [(session.slot, draft) for session, draft in zip(sessions, drafts, strict=True)]
    verdicts = target.verify(batch)
    taken: list[Step] = []
    for session, draft, verdict in zip(sessions, drafts, verdicts, strict=True):
        path, token = accept(draft, verdict)
        result = session.take(draft, path, token, verdict.features_along(path))
        session.count(verdict)
        *cached, pending = result.emitted
        target.commit(session.slot, path[: len(cached)], pending)
        session.observe(result)
        taken.append(result)
    return taken


def prefill(session: Session[SlotT], target: TargetModel[SlotT]) -> Iterator[int]:
    """Compute the prompt; yields the tokens done after each chunk. Raises Cancelled between."""
    started = session.clock()
    for done in target.prefill(session.slot):
        session.counters.prefill_s = session.clock() - started
        yield done
        session.check_cancelled()
    session.counters.prefill_s = session.clock() - started


def decode(session: Session[SlotT], target: TargetModel[SlotT]) -> Iterator[Step]:
    """Run one session to its end. The caller opens and closes the slot."""
    while session.finish is None:
        started = session.clock()
        (result,) = step([session], target)
        session.counters.decode_s += session.clock() - started
        yield result
