"""Carries messages between clients and their servers: standard streams, TCP, WebSocket.

Must not know what is in a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import AsyncIterable, Callable
from pathlib import Path
from typing import Protocol

from apply_server.lsp.lifecycle import when_gone
from apply_server.lsp.rpc import RpcProtocol
from apply_server.lsp.wire import (
    PipeOutbox,
    QueueOutbox,
    StreamOutbox,
    framed,
    messages,
    read_in_thread,
)

_PATIENCE_S = 1.0
# Pages of any site may open sockets to this machine: only local ones, and programs, are served.
_ORIGINS = (None, re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?"))


class Server(Protocol):
    """One client's server."""

    process_id: int | None

    @property
    def protocol(self) -> RpcProtocol:
        """What its messages go through."""
        ...

    def disconnect(self) -> None:
        """The client is gone: stop its jobs."""
        ...


NewServer = Callable[[], Server]


async def converse(server: Server, incoming: AsyncIterable[bytes]) -> None:
    """Handle messages until the client says `exit` or is gone."""
    try:
        async for body in incoming:
            server.protocol.receive(body)
            if server.protocol.stopped:
                return
    finally:
        server.disconnect()


async def serve_stdio(new_server: NewServer) -> int:
    """Serve the process that started this one; the exit status that LSP asks for.

    The wire gets descriptors of its own. What anything else prints goes to stderr, and what it
    reads is nothing.
    """
    wire_in, wire_out = os.dup(0), os.dup(1)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    server = new_server()
    loop = asyncio.get_running_loop()
    reader = read_in_thread(os.fdopen(wire_in, "rb"))

    def lost() -> None:
        loop.call_soon_threadsafe(reader.feed_eof)

    outbox = PipeOutbox(wire_out, lost)
    server.protocol.connect(outbox, framed)
    watcher = asyncio.ensure_future(_watch_client(server, reader))
    try:
        await converse(server, messages(reader))
    finally:
        watcher.cancel()
        outbox.close(_PATIENCE_S)
    return server.protocol.exit_status


async def _watch_client(server: Server, reader: asyncio.StreamReader) -> None:
    """A client that dies may leave the pipe open, as when its children still hold it."""
    while server.process_id is None:
        await asyncio.sleep(0.2)
    await when_gone(server.process_id)
    reader.feed_eof()


async def serve_tcp(new_server: NewServer, host: str, port: int) -> None:
    """Serve any number of clients until cancelled."""

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = new_server()
        server.protocol.connect(StreamOutbox(writer), framed)
        try:
            # At the end all are cancelled; asyncio's own streams would call that a fault.
            with contextlib.suppress(asyncio.CancelledError):
                await converse(server, messages(reader))
        finally:
            writer.close()

    listener = await asyncio.start_server(client, host, port)
    _announce("tcp", listener.sockets[0].getsockname())
    async with listener:
        await listener.serve_forever()


async def serve_ws(new_server: NewServer, host: str, port: int) -> None:
    """Serve any number of clients until cancelled; each message is one of LSP's, unframed."""
    from websockets.asyncio.server import ServerConnection, serve

    async def client(socket: ServerConnection) -> None:
        server = new_server()
        outbox = QueueOutbox()
        server.protocol.connect(outbox, bytes)
        sender = asyncio.ensure_future(_send_all(outbox, socket))
        try:
            await converse(server, _bodies(socket))
        finally:
            sender.cancel()

    async with serve(client, host, port, origins=_ORIGINS, max_size=1 << 28) as listener:
        _announce("ws", next(iter(listener.sockets)).getsockname())
        await listener.serve_forever()


async def _bodies(socket: AsyncIterable[str | bytes]) -> AsyncIterable[bytes]:
    async for message in socket:
        yield message.encode() if isinstance(message, str) else message


async def _send_all(outbox: QueueOutbox, socket: Sender) -> None:
    from websockets.exceptions import ConnectionClosed

    try:
        while True:
            await socket.send((await outbox.next()).decode())
    except ConnectionClosed:
        return


class Sender(Protocol):
    """What is needed of a WebSocket to write to it."""

    async def send(self, message: str) -> None:
        """Send one message, and wait while the client can't take more."""
        ...


def _announce(kind: str, address: tuple[object, ...]) -> None:
    """Where clients find us, for whoever asked for any free port."""
    sys.stderr.write(f"Serving LSP on {kind}://{address[0]}:{address[1]}\n")
    sys.stderr.flush()
