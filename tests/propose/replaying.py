"""Replay a known answer against a proposer, without a target's weights."""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.decode.draft import Draft, Proposer
from apply_server.decode.loop import decode
from apply_server.decode.session import Session
from apply_server.target.scripted import ScriptedTarget
from tests.decode.running import StopAt


class Recorded:
    """Passes everything on and keeps the drafts."""

    def __init__(self, inner: Proposer) -> None:
        self.inner = inner
        self.drafts: list[Draft] = []
        self.observe = inner.observe

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        self.drafts.append(self.inner.propose(context, limit))
        return self.drafts[-1]


def replay(answer: Sequence[int], proposer: Proposer) -> list[Draft]:
    """The drafts of every pass until the answer is there."""
    target = ScriptedTarget(lambda prompt: answer, off_script=-5)
    slot = target.open([], len(answer))
    recorded = Recorded(proposer)
    session = Session(slot, recorded, StopAt(), len(answer))
    for _ in decode(session, target):
        pass
    assert session.output == list(answer)
    return recorded.drafts
