"""Messages as bytes, in and out, whatever carries them. Nothing here ever blocks the event loop.

Must not know what a message says.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Callable
from queue import SimpleQueue
from typing import BinaryIO, Protocol

_LENGTH = re.compile(rb"content-length\s*:\s*(\d{1,12})\s*", re.IGNORECASE)
_LONGEST_HEADER = 1 << 16
_LONGEST_MESSAGE = 1 << 28
_CHUNK = 1 << 16


class Outbox(Protocol):
    """Where messages to a client go."""

    @property
    def backlog(self) -> int:
        """Bytes that the client hasn't taken yet."""
        ...

    def write(self, data: bytes) -> None:
        """Take it and return at once."""
        ...


def framed(body: bytes) -> bytes:
    """A message with its header."""
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


async def messages(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The bodies of a stream's messages until it ends.

    Lines that are no header are skipped. It ends too where a length is missing or can't be right,
    as nobody knows where the next message begins.
    """
    try:
        while (length := await _length(reader)) is not None:
            yield await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        return


async def _length(reader: asyncio.StreamReader) -> int | None:
    """The next header's length; None at the end."""
    length: int | None = None
    while line := await reader.readline():
        if found := _LENGTH.fullmatch(line.strip()):
            length = int(found[1])
        elif not line.strip() and length is not None:
            return length if length <= _LONGEST_MESSAGE else None
    return None


def read_in_thread(pipe: BinaryIO) -> asyncio.StreamReader:
    """A pipe's bytes as a stream. The thread ends with the pipe, or with the process."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(_LONGEST_HEADER)

    def tell(feed: Callable[[], None]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(feed)

    def read() -> None:
        try:
            while data := os.read(pipe.fileno(), _CHUNK):
                tell(lambda data=data: reader.feed_data(data))  # type: ignore[misc]
        except OSError:
            pass
        tell(reader.feed_eof)

    threading.Thread(target=read, name="wire-in", daemon=True).start()
    return reader


class PipeOutbox:
    """Writes to a pipe from a thread of its own: a client that doesn't read stops only that.

    `lost` is called once, on that thread, if the client went away.
    """

    def __init__(self, descriptor: int, lost: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._lost = lost
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._queued = 0
        self._written = 0
        self._thread = threading.Thread(target=self._run, name="wire-out", daemon=True)
        self._thread.start()

    @property
    def backlog(self) -> int:
        """See Outbox.backlog."""
        return self._queued - self._written

    def write(self, data: bytes) -> None:
        """See Outbox.write."""
        self._queued += len(data)
        self._queue.put(data)

    def close(self, patience_s: float) -> None:
        """Write what is left, as long as the client takes it within that time."""
        self._queue.put(None)
        self._thread.join(patience_s)

    def _run(self) -> None:
        try:
            while (data := self._queue.get()) is not None:
                self._write_all(memoryview(data))
        except OSError:
            self._lost()

    def _write_all(self, data: memoryview) -> None:
        while data:
            written = os.write(self._descriptor, data[:_CHUNK])
            self._written += written
            data = data[written:]


class StreamOutbox:
    """Writes to a socket, whose transport keeps what the client hasn't taken."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    @property
    def backlog(self) -> int:
        """See Outbox.backlog."""
        return self._writer.transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """See Outbox.write."""
        if not self._writer.is_closing():
            self._writer.write(data)


class QueueOutbox:
    """Keeps messages until somebody sends them, for carriers that want to be waited for."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self.backlog = 0

    def write(self, data: bytes) -> None:
        """See Outbox.write."""
        self.backlog += len(data)
        self._queue.put_nowait(data)

    async def next(self) -> bytes:
        """The next message, once there is one."""
        data = await self._queue.get()
        self.backlog -= len(data)
        return data
