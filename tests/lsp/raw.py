"""A language client of a few lines, for tests that must control every byte and every moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Message = dict[str, Any]
ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
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
    """Starts a server and talks to it. `answer` gives results for the server's own requests."""

    def __init__(
        self,
        *options: str,
        answer: Callable[[Message], Any] = lambda request: None,
        env: Mapping[str, str] | None = None,
        reads: bool = True,
    ) -> None:
        self.process = subprocess.Popen(
            serve_command(*options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env or environment(),
        )
        self.answer = answer
        self.received: list[Message] = []  # all but responses, in order
        self.answered: dict[Any, Message] = {}
        self.order: list[Message] = []
        self.errors: list[bytes] = []
        self._next = 0
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        threads = [self._read_errors, *([self._read] if reads else [])]
        for work in threads:
            threading.Thread(target=work, daemon=True).start()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    # Sending

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        with self._writing:
            self.process.stdin.write(data)
            self.process.stdin.flush()

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
                raise TimeoutError(f"{self.received[-3:]} {b''.join(self.errors)[-2000:]!r}")

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

    def exit(self) -> int:
        """Shut down by the book; the exit status."""
        assert self.call("shutdown")["result"] is None
        self.notify("exit")
        return self.process.wait(PATIENCE_S)

    @property
    def stderr(self) -> str:
        return b"".join(self.errors).decode("utf-8", "replace")

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

    def _message(self) -> Message | None:
        assert self.process.stdout is not None
        length = 0
        while line := self.process.stdout.readline():
            if line == b"\r\n":
                body = self.process.stdout.read(length)
                value: Message = json.loads(body)
                return value
            name, _, number = line.partition(b":")
            assert name == b"Content-Length", f"not of the wire: {line!r}"
            length = int(number)
        return None

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        while data := os.read(self.process.stderr.fileno(), 1 << 16):
            self.errors.append(data)


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
