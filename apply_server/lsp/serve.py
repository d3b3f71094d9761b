"""Starts the server on a transport and sees the process to its end.

Must not know the command line.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from apply_server.engine.provider import LoadedModel, ScriptedAnswers, Source
from apply_server.errors import InvalidRequest
from apply_server.lsp.lifecycle import until_signalled
from apply_server.lsp.server import ApplyLanguageServer
from apply_server.lsp.service import Backend
from apply_server.lsp.settings import Settings
from apply_server.lsp.transport import serve_stdio, serve_tcp, serve_ws

# How long work that was cancelled may take to notice: a pass of a large model on a slow machine.
_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; `kind` is "tcp" or "ws", port 0 any free one."""

    kind: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Sources:
    """Where engines come from: a model, or the answers that a test has written down."""

    answers: ScriptedAnswers | None = None
    model: LoadedModel = field(default_factory=LoadedModel)

    def __call__(self, target: str) -> Source:
        """The source for a configured target. Raises InvalidRequest without answers."""
        if target != "scripted":
            return self.model.engine
        if self.answers is None:
            raise InvalidRequest(
                'The target "scripted" answers from a file, and this server was started without.'
            )
        return self.answers.engine


def serve(
    settings: Settings, answers: ScriptedAnswers | None, address: Address | None, log_level: str
) -> int:
    """Serve until the client (without an address) or a signal ends it; the exit status.

    Ends the process itself where work is still running then: it may sit in a long call that can't
    be interrupted, and nobody waits for it any more.
    """
    logging.basicConfig(stream=sys.stderr, level=log_level.upper())
    if log_level != "debug":
        # It logs a traceback for whatever a client gets wrong; we answer that.
        logging.getLogger("pygls").setLevel(logging.CRITICAL)
    backend = Backend(Sources(answers))
    status = asyncio.run(until_signalled(_transport(backend, settings, address)))
    if not backend.workers.close(_PATIENCE_S):
        sys.stderr.flush()
        os._exit(status)
    return status


def _transport(
    backend: Backend, settings: Settings, address: Address | None
) -> Coroutine[Any, Any, int | None]:
    def new_server() -> ApplyLanguageServer:
        return ApplyLanguageServer(backend, settings)

    if address is None:
        return serve_stdio(new_server)
    listen = serve_tcp if address.kind == "tcp" else serve_ws
    return listen(new_server, address.host, address.port)
