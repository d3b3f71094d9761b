"""The process around the server: how it begins, and that it ends.

Must not know messages.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any

_POLL_S = 1.0


async def when_gone(process: int) -> None:
    """Return once that process has ended. Where a system can't tell, never."""
    if sys.platform == "linux":
        try:
            descriptor = os.pidfd_open(process)
        except OSError:
            return
        await _readable(descriptor)
    elif os.name == "posix":
        while _exists(process):
            await asyncio.sleep(_POLL_S)
    else:
        # There the pipe is closed with the process; asking by signal would kill it.
        await asyncio.Event().wait()


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def until_signalled(work: Coroutine[Any, Any, int | None]) -> int:
    """Run `work` to its end or to SIGTERM or SIGINT; the exit status for the process."""
    task = asyncio.ensure_future(work)
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        task.cancel()

    if os.name == "posix":
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop, number)
    try:
        return await task or 0
    except asyncio.CancelledError:
        return 128 + received[0] if received else 1
