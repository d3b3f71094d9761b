"""A language client of a few lines, for tests that must control every byte and every moment."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

Message = dict[str, Any]
ROOT = Path(__file__).parents[2]
PATIENCE_S = 300.0  # only a hang is that slow, whatever else the machine does
CAPABILITIES: Mapping[str, object] = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create"]},
    },
}


def write_answers(folder: Path, answers: Mapping[str, str]) -> Path:
    """A script for `serve --answers`."""
    path = folder / "answers.json"
    path.write_text(json.dumps(answers), "utf-8")
    return path


def serve_command(*options: str) -> list[str]:
    return [sys.executable, "-m", "apply_server", "serve", *options]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


class Client:
    """Talks to a server. `answer` gives results for the server's own requests."""

    def __init__(
        self,
        reader: IO[bytes],
        writer: IO[bytes],
        answer: Callable[[Message], Any] = lambda request: None,
        *,
        reads: bool = True,
        connection: socket.socket | None = None,
    ) -> None:
        self.answer = answer
        self._socket = connection
        self.received: list[Message] = []  # all but responses
        self.answered: dict[Any, Message] = {}
        self.order: list[Message] = []
        self.closed = False  # by the server
        self._reader, self._writer = reader, writer
        self._next = 0
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        if reads:
            threading.Thread(target=self._read, daemon=True).start()

    # Sending

    def send_bytes(self, data: bytes) -> None:
        with self._writing:
            self._writer.write(data)
            self._writer.flush()

    def send(self, message: object) -> None:
        body = json.dumps(message).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: object = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: object = None, key: object = None) -> Any:
        """Send a request; its id."""
        if key is None:
            self._next += 1
            key = self._next
        self.send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
        return key

    def call(self, method: str, params: object = None) -> Message:
        """Send a request and wait for its response."""
        return self.response(self.request(method, params))

    # Receiving

    def response(self, key: object, patience_s: float = PATIENCE_S) -> Message:
        self.wait(lambda: key in self.answered, patience_s)
        return self.answered[key]

    def wait(self, condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
        """Until something received makes the condition true."""
        with self._changed:
            if not self._changed.wait_for(condition, patience_s):
                raise TimeoutError(str(self.order[-3:]))

    def of(self, method: str) -> list[Message]:
        """The params of what came under this name."""
        return [message["params"] for message in self.received if message["method"] == method]

    def progress(self, token: object) -> list[Message]:
        """The values reported to a token."""
        return [item["value"] for item in self.of("$/progress") if item["token"] == token]

    # Usual steps

    def initialize(
        self,
        capabilities: Mapping[str, object] = CAPABILITIES,
        options: Mapping[str, object] | None = None,
        process: int | None = None,
    ) -> Message:
        """The handshake; the server's capabilities."""
        params = {
            "processId": process,
            "rootUri": None,
            "capabilities": capabilities,
            "initializationOptions": options,
        }
        result = self.call("initialize", params)["result"]
        self.notify("initialized", {})
        capabilities_: Message = result["capabilities"]
        return capabilities_

    def open(self, uri: str, text: str, version: int = 1, language: str = "python") -> None:
        document = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, uri: str, version: int, text: str, place: Sequence[int] | None = None) -> None:
        """Replace a range (line, character, end line, end character), or the whole text."""
        change: Message = {"text": text}
        if place is not None:
            line, character, end_line, end = place
            change["range"] = {
                "start": {"line": line, "character": character},
                "end": {"line": end_line, "character": end},
            }
        document = {"uri": uri, "version": version}
        params = {"textDocument": document, "contentChanges": [change]}
        self.notify("textDocument/didChange", params)

    def apply(self, uri: str, version: int | None = 1, **params: object) -> Message:
        """applyEdit/apply and its response."""
        return self.response(self.start(uri, version, **params))

    def start(self, uri: str, version: int | None = 1, **params: object) -> Any:
        """applyEdit/apply; its id."""
        document = {"uri": uri, "version": version}
        return self.request("applyEdit/apply", {"textDocument": document, **params})

    def command(self, uri: str, version: int | None = 1, **params: object) -> Message:
        """workspace/executeCommand applyEdit.apply and its response."""
        argument = {"textDocument": {"uri": uri, "version": version}, **params}
        return self.call(
            "workspace/executeCommand", {"command": "applyEdit.apply", "arguments": [argument]}
        )

    def shut_down(self) -> None:
        """The end, by the book."""
        assert self.call("shutdown")["result"] is None
        self.notify("exit")

    def hang_up(self) -> None:
        """Be gone without a word."""
        assert self._socket is not None
        self._socket.shutdown(socket.SHUT_RDWR)

    def _read(self) -> None:
        while (message := self._message()) is not None:
            with self._changed:
                self.order.append(message)
                if "method" in message:
                    self.received.append(message)
                else:
                    self.answered[message["id"]] = message
                self._changed.notify_all()
            if "method" in message and "id" in message:
                result = self.answer(message)
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def _message(self) -> Message | None:
        length = 0
        while line := self._reader.readline():
            if line == b"\r\n":
                value: Message = json.loads(self._reader.read(length))
                return value
            name, _, number = line.partition(b":")
            assert name == b"Content-Length", f"not of the wire: {line!r}"
            length = int(number)
        return None


class Spawned(Client):
    """A client with a server process of its own, over its standard streams."""

    def __init__(
        self,
        *options: str,
        answer: Callable[[Message], Any] = lambda request: None,
        env: Mapping[str, str] | None = None,
        reads: bool = True,
    ) -> None:
        self.process = start_process(serve_command(*options), env)
        assert self.process.stdin
        assert self.process.stdout
        super().__init__(self.process.stdout, self.process.stdin, answer, reads=reads)
        self.errors = Errors(self.process)

    def __enter__(self) -> Spawned:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def exit(self) -> int:
        """Shut down by the book; the exit status."""
        self.shut_down()
        return self.process.wait(PATIENCE_S)


class Listening:
    """A server process that listens, for tests that need many clients but no process each."""

    def __init__(self, *options: str) -> None:
        self.process = start_process(serve_command("--tcp", "127.0.0.1:0", *options))
        self.errors = Errors(self.process)
        wait_until(lambda: "Serving LSP on" in self.errors.text)
        self.port = int(self.errors.text.partition("tcp://127.0.0.1:")[2].split()[0])

    def connect(
        self, answer: Callable[[Message], Any] = lambda request: None, *, reads: bool = True
    ) -> Client:
        """A new client."""
        connection = socket.create_connection(("127.0.0.1", self.port))
        return Client(
            connection.makefile("rb"),
            connection.makefile("wb"),
            answer,
            reads=reads,
            connection=connection,
        )

    def stop(self) -> int:
        """End it by SIGTERM; the exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE_S)


class Errors:
    """What a process says on stderr."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        self._pipe = process.stderr
        self._read: list[bytes] = []
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def text(self) -> str:
        return b"".join(self._read).decode("utf-8", "replace")

    def _run(self) -> None:
        while data := os.read(self._pipe.fileno(), 1 << 16):
            self._read.append(data)


def start_process(
    command: Sequence[str], env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env or environment(),
    )


def edited(text: str, edits: Sequence[Message], encoding: str = "utf-16") -> str:
    """The text after a client has applied LSP edits (all of the original text)."""
    data = text.encode("utf-32-le" if encoding == "utf-32" else encoding.replace("16", "16-le"))
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    codec = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[encoding]
    starts = [0]
    at = 0
    for line in lsp_lines(text):
        at += len(line.encode(codec))
        starts.append(at)

    def offset(position: Message) -> int:
        return starts[position["line"]] + width * int(position["character"])

    for edit in reversed(edits):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        data = data[:start] + edit["newText"].encode(codec) + data[end:]
    return data.decode(codec)


def lsp_lines(text: str) -> list[str]:
    """Lines with their endings, as LSP has them; written for tests, apart from the product's."""
    lines, line = [], ""
    for index, character in enumerate(text):
        line += character
        if character == "\n" or (character == "\r" and text[index + 1 : index + 2] != "\n"):
            lines.append(line)
            line = ""
    return [*lines, line]


def wait_until(condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Poll something that nobody tells us about."""
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.02)
