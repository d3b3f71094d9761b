"""What the server tells its client, on its own accord. Used on the event loop's thread only.

Must not know why something is said.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from lsprotocol import types
from pygls.capabilities import get_capability

# Beyond this a client isn't reading, and progress only makes it worse.
_BACKLOG_BYTES = 1 << 18


class Wire(Protocol):
    """The way to the client."""

    @property
    def backlog(self) -> int:
        """Bytes that the client hasn't taken yet."""
        ...

    def send_json(self, message: dict[str, object]) -> None:
        """Send a message as it is."""
        ...

    def send_request_async(self, method: str, params: Any = None) -> Awaitable[Any]:
        """Ask the client."""
        ...


@dataclass(slots=True)
class Client:
    """The editor. `capabilities` are known from its initialize request on."""

    wire: Wire
    capabilities: types.ClientCapabilities = field(default_factory=types.ClientCapabilities)
    trace: str = "off"

    def can(self, capability: str) -> bool:
        """Whether it says it has a capability, by its dotted name in lsprotocol's spelling."""
        return bool(get_capability(self.capabilities, capability, False))

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self.wire.send_json({"jsonrpc": "2.0", "method": method, "params": params})

    def progress(self, token: int | str, value: object, *, spare: bool = False) -> None:
        """Report to a token. `spare`: may be left out for a client that can't keep up."""
        if not spare or self.wire.backlog < _BACKLOG_BYTES:
            self.notify(types.PROGRESS, {"token": token, "value": value})

    def show(self, message: str, kind: types.MessageType = types.MessageType.Warning) -> None:
        """Something the user must know."""
        self.notify(types.WINDOW_SHOW_MESSAGE, {"type": kind.value, "message": message})

    def log(self, message: str, kind: types.MessageType = types.MessageType.Log) -> None:
        """Something for the editor's log."""
        self.notify(types.WINDOW_LOG_MESSAGE, {"type": kind.value, "message": message})

    def log_trace(self, message: str, verbose: Callable[[], str] | None = None) -> None:
        """A step of the work, for whoever traces it; details only for those who want them."""
        if self.trace == "off":
            return
        params = {"message": message}
        if self.trace == "verbose" and verbose is not None:
            params["verbose"] = verbose()
        self.notify(types.LOG_TRACE, params)

    async def ask(self, method: str, params: object) -> Any:
        """Send a request and wait for its answer. Raises JsonRpcException."""
        return await self.wire.send_request_async(method, params)
