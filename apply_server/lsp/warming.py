"""Computing ahead of the request: the file's part of the prompt, while the user types the edit.

Whatever asks for the model in earnest stops it; what was done by then is not lost. Must not know
messages or documents.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event

from apply_server.engine.base import Prefilling
from apply_server.errors import ApplyError
from apply_server.lsp.workers import Workers

Ahead = Callable[[Event], Iterator[Prefilling]]
"""Starts the work; called on the model's thread. The event cancels it."""


@dataclass(slots=True)
class Warming:
    """At most one file at a time is computed ahead, for all clients: the last that was named."""

    workers: Workers
    _cancel: Event = field(default_factory=Event)

    async def start(self, ahead: Ahead) -> int:
        """How many tokens are known in the end, 0 where nothing was to be done or could be.

        A failure is for the request to tell that may never come.
        """
        self.stop()
        cancel = self._cancel = Event()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.workers.model, _computed, ahead, cancel)

    def stop(self) -> None:
        """Within one block of the prompt; harmless where there is nothing to stop."""
        self._cancel.set()


def _computed(ahead: Ahead, cancel: Event) -> int:
    known = 0
    if cancel.is_set():
        return known
    try:
        for progress in ahead(cancel):
            known = progress.done
    except ApplyError:
        pass
    return known
