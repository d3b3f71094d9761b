"""Run one session to its end, as the engine would."""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.decode.draft import Proposer
from apply_server.decode.loop import decode, prefill
from apply_server.decode.sampling import GREEDY, Sampling
from apply_server.decode.session import Session
from apply_server.decode.target import TargetModel


class StopAt:
    """Ends the output at any of these tokens."""

    def __init__(self, *tokens: int) -> None:
        self.tokens = tokens

    def ends(self, token: int) -> bool:
        return token in self.tokens


def open_slot(  # type: ignore[no-untyped-def]
    target: TargetModel,  # type: ignore[type-arg]
    prompt: Sequence[int],
    room: int,
    sampling: Sampling = GREEDY,
):
    """A slot with its prompt computed."""
    slot = target.open(prompt, room, sampling)
    for _ in target.prefill(slot):
        pass
    return slot


def run(
    target: TargetModel,  # type: ignore[type-arg]
    prompt: Sequence[int],
    proposer: Proposer,
    limit: int,
    stop: StopAt | None = None,
    *,
    sampling: Sampling = GREEDY,
) -> Session:  # type: ignore[type-arg]
    """Open, decode, close; the finished session."""
    slot = target.open(prompt, limit, sampling)
    session = Session(slot, proposer, stop or StopAt(), limit)
    try:
        for _ in prefill(session, target):
            pass
        for _ in decode(session, target):
            pass
    finally:
        target.close(slot)
    return session
