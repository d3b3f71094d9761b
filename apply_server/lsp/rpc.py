"""JSON-RPC over pygls, made to hold what it promises: every request is answered, once.

pygls 2.1 leaves requests it can't read unanswered, can't cancel commands, trips over a shutdown
with work in flight, and ends the process by itself. Must not know any request of ours.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from typing import Any

from cattrs import Converter
from lsprotocol import converters, types
from pygls.exceptions import JsonRpcException
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    lsp_method,
)

from apply_server.errors import ApplyError
from apply_server.lsp import protocol
from apply_server.lsp.jobs import cancelled
from apply_server.lsp.settings import spelled
from apply_server.lsp.wire import Outbox

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INTERNAL_ERROR, NOT_INITIALIZED = -32603, -32002

logger = logging.getLogger(__name__)


def converter() -> Converter:
    """lsprotocol's; messages that it has no type for keep their params as they came."""
    made: Converter = converters.get_converter()
    for message in (JsonRPCRequestMessage, JsonRPCNotification, JsonRPCResponseMessage):
        made.register_structure_hook(message, lambda value, kind: kind(**value))
    return made


class RpcProtocol(LanguageServerProtocol):
    """See the module. `connect` gives it the way out, `receive` takes what came in."""

    outbox: Outbox | None = None
    stopped: bool = False  # after `exit`: nothing is read or written any more
    _initialized: bool = False

    def connect(self, outbox: Outbox, frame: Callable[[bytes], bytes]) -> None:
        """Write to `outbox`, each message's body put into `frame`."""
        self.outbox, self._frame = outbox, frame

    @property
    def backlog(self) -> int:
        """Bytes that the client hasn't taken yet."""
        return 0 if self.outbox is None else self.outbox.backlog

    @property
    def exit_status(self) -> int:
        """What LSP wants the process to end with: 0 after `shutdown`, else 1."""
        return 0 if self._shutdown else 1

    def send_json(self, message: dict[str, object]) -> None:
        """Send a message as it is."""
        self._send_data(message)

    def receive(self, body: bytes) -> None:
        """Handle a message; what is wrong with it is answered as far as there is an id."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            self._refuse(None, PARSE_ERROR, f"Not JSON: {error}")
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != self.VERSION:
            self._refuse(_id(message), INVALID_REQUEST, "Not a JSON-RPC 2.0 message.")
        elif "method" in message:
            self._receive_call(message)
        else:
            self._receive_answer(message)

    def _receive_call(self, message: dict[str, Any]) -> None:
        method, request = message["method"], _id(message)
        message = {"params": None, **message}
        if not isinstance(method, str) or ("id" in message and request is None):
            self._refuse(request, INVALID_REQUEST, "A method is a string, an id one or a number.")
        elif refusal := self._out_of_order(method):
            self._refuse_request(request, *refusal)
        else:
            try:
                known = self.structure_message(message)
            except Exception as error:  # whatever cattrs meets in what a client sent
                logger.debug("%s: %r", method, error)
                self._refuse_request(request, protocol.INVALID_PARAMS, f"Bad params for {method}.")
            else:
                self._dispatch(known, method, request)

    def _dispatch(self, known: Any, method: str, request: int | str | None) -> None:
        """LSP's notifications have no answer, so one that asks for it is told so."""
        if request is not None and not hasattr(known, "id"):
            self._refuse(request, INVALID_REQUEST, f"{method} is a notification: it has no id.")
        else:
            self.handle_message(known)

    def _out_of_order(self, method: str) -> tuple[int, str] | None:
        if method == types.EXIT:
            return None
        if self._shutdown:
            return INVALID_REQUEST, "The server is shutting down."
        if self._initialized and method == types.INITIALIZE:
            return INVALID_REQUEST, "The server is initialized already."
        if not self._initialized and method != types.INITIALIZE:
            return NOT_INITIALIZED, "The first request must be initialize."
        return None

    def _receive_answer(self, message: dict[str, Any]) -> None:
        request = _id(message)
        if request is None or request not in self._request_futures:
            logger.debug("An answer to no request: %r", message.get("id"))
            return
        try:
            self.handle_message(self.structure_message(message))
        except Exception as error:
            future = self._request_futures.pop(request, None)
            if future is not None and not future.done():
                future.set_exception(
                    JsonRpcException(f"The client's answer is unreadable: {error}")
                )

    def _refuse_request(self, request: int | str | None, number: int, reason: str) -> None:
        """Notifications have no answer."""
        if request is not None:
            self._refuse(request, number, reason)

    def _refuse(self, request: int | str | None, number: int, reason: str) -> None:
        error = {"code": number, "message": reason}
        self.send_json({"jsonrpc": "2.0", "id": request, "error": error})

    def _handle_request(self, msg_id: Any, method_name: str, params: Any) -> None:
        """Look it up here, as pygls logs a traceback for a method that nobody has."""
        try:
            self._get_handler(method_name)
        except JsonRpcException:
            self._refuse(msg_id, METHOD_NOT_FOUND, f"There is no method {method_name}.")
            return
        super()._handle_request(msg_id, method_name, params)

    def _send_handler_result(self, future: Future[Any], *, msg_id: Any) -> None:
        self._request_futures.pop(msg_id, None)
        error = cancelled() if future.cancelled() else future.exception()
        match error:
            case None:
                self._send_response(msg_id, result=future.result())
            case ApplyError():
                self._send_response(msg_id, error=response_error(error))
            case JsonRpcException():
                self._send_response(msg_id, error=error.to_response_error())
            case _:
                logger.error("Request %s failed", msg_id, exc_info=error)
                fault = ApplyError(f"This is a fault of apply-server: {error!r}.")
                self._send_response(msg_id, error=response_error(fault, INTERNAL_ERROR))

    def _check_handler_result(self, future: Future[Any]) -> None:
        """A notification's fault is nothing to bother the user with."""
        if not future.cancelled() and (error := future.exception()) is not None:
            logger.warning("A notification could not be handled: %s", error)

    def _send_data(self, data: Any) -> None:
        if self.stopped or self.outbox is None:
            return
        body = json.dumps(data, default=self._serialize_message, separators=(",", ":"))
        self.outbox.write(self._frame(body.encode()))

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, Any]:
        """See LSP."""
        result = yield from super().lsp_initialize(params)
        self._initialized = True
        return result

    @lsp_method(types.SHUTDOWN)
    async def lsp_shutdown(self, *args: Any) -> None:  # type: ignore[override]
        """Cancel what is in flight; each request is answered before this one."""
        own = self.msg_id
        futures = list(self._request_futures.items())
        waiting: list[Any] = [future for request, future in futures if request != own]
        self._shutdown = True
        for future in waiting:
            future.cancel()
        tasks = [future for future in waiting if asyncio.isfuture(future)]
        if tasks:
            await asyncio.wait(tasks)

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> Generator[Any, Any, None]:
        """Only note it: whoever reads the messages ends the connection, and the process."""
        yield from ()
        self.stopped = True

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:  # type: ignore[override]
        """As the request's own task, so that cancelling the request reaches the command."""
        command: Callable[[types.ExecuteCommandParams], Awaitable[Any]] | None
        command = self.fm.commands.get(params.command)
        if command is None:
            raise JsonRpcException(
                f"There is no command {params.command}.", protocol.INVALID_PARAMS
            )
        result = command(params)
        return await result if inspect.isawaitable(result) else result


def response_error(error: ApplyError, number: int | None = None) -> types.ResponseError:
    """The error for the wire: the sentence for the user, and all of it as data."""
    error = error.spelled(spelled)
    known = protocol.ERROR_NUMBERS.get(error.code, protocol.REQUEST_FAILED)
    return types.ResponseError(number or known, error.message, error.to_json())


def _id(message: object) -> int | str | None:
    request = message.get("id") if isinstance(message, dict) else None
    return request if isinstance(request, int | str) and not isinstance(request, bool) else None


def settle(task: asyncio.Future[Any]) -> None:
    """For tasks that nobody waits for: tell what went wrong with them."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.warning("%s", error)
