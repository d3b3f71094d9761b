"""The threads that edits run on: one for the model, a few for everything before it.

So a merge is shown while the model is busy with another document, and the event loop waits for
neither. Must not know editors or messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event
from typing import ParamSpec, TypeVar

from apply_server.engine.base import Done, EngineEvent, ModelNeeded
from apply_server.errors import Cancelled

ParamsT = ParamSpec("ParamsT")
ResultT = TypeVar("ResultT")
Handle = Callable[[EngineEvent], None]

# A shorter wait is not worth a word.
_SOON_S = 0.2


@dataclass(frozen=True, slots=True)
class Workers:
    """Where an engine's events are computed."""

    model: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="model")
    )
    merges: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(2, thread_name_prefix="merge")
    )

    async def run(
        self,
        events: Iterator[EngineEvent],
        cancel: Event,
        handle: Handle,
        waits: Callable[[], None],
    ) -> Done:
        """Run an engine to its end; `handle` gets the events on the workers' threads. `waits` is
        called (on the loop) where the model has something else to do first.
        """
        loop = asyncio.get_running_loop()
        done = await loop.run_in_executor(self.merges, _advance, events, cancel, handle)
        if done is None:
            queued = self.model.submit(_advance, events, cancel, handle)
            rest = asyncio.wrap_future(queued)
            await asyncio.wait([rest], timeout=_SOON_S)
            if not (queued.running() or queued.done()):
                waits()
            done = await rest
        assert done is not None, "an engine's last event is Done"
        return done

    async def aside(
        self, work: Callable[ParamsT, ResultT], *args: ParamsT.args, **kwargs: ParamsT.kwargs
    ) -> ResultT:
        """Short work that is too long for the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.merges, lambda: work(*args, **kwargs))

    def close(self, patience_s: float) -> bool:
        """Take no more work; whether what was running has ended within that time.

        It must have been cancelled before.
        """
        last = [pool.submit(lambda: None) for pool in (self.model, self.merges)]
        _, waiting = wait(last, patience_s)
        for pool in (self.model, self.merges):
            pool.shutdown(wait=False, cancel_futures=True)
        return not waiting


def _advance(events: Iterator[EngineEvent], cancel: Event, handle: Handle) -> Done | None:
    """Go on to the end, or to where the model is needed (None). Raises Cancelled."""
    if cancel.is_set():
        raise Cancelled("Cancelled. Nothing was changed.")
    for event in events:
        match event:
            case Done():
                return event
            case ModelNeeded():
                return None
            case _:
                handle(event)
    return None
