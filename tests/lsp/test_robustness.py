"""Whatever comes in, each request is answered once, and the next client is served."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lsp.raw import Client, Listening, write_answers

URI = "file:///w/cart.py"
TEXT = "def total(rows):\n    return sum(rows)\n"
METHODS = [
    "initialize", "initialized", "shutdown", "applyEdit/apply", "applyEdit/cancel",
    "applyEdit/stats", "textDocument/didOpen", "textDocument/didChange", "textDocument/didClose",
    "textDocument/codeAction", "workspace/executeCommand", "workspace/didChangeConfiguration",
    "workspace/didChangeWorkspaceFolders", "notebookDocument/didChange", "notebookDocument/didOpen",
    "$/cancelRequest", "$/setTrace", "window/workDoneProgress/cancel", "no/such", "", None, 7,
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
URIS = st.sampled_from([URI, "file:///w/b.py", "git:/x", "nothing", ""]) | JSON
DOCUMENTS = st.fixed_dictionaries(
    {"uri": URIS},
    optional={
        "version": st.integers(-1, 4) | JSON,
        "text": st.sampled_from([TEXT, "", "x\r\ny"]) | JSON,
        "languageId": st.just("python") | JSON,
    },
)
PLACES = st.fixed_dictionaries({"line": st.integers(-2, 9), "character": st.integers(-2, 9)})
RANGES = st.fixed_dictionaries({"start": PLACES, "end": PLACES}) | JSON
PARAMS = (
    st.fixed_dictionaries(
        {},
        optional={
            "textDocument": DOCUMENTS | JSON,
            "contentChanges": st.lists(
                st.fixed_dictionaries({"text": st.text()}, optional={"range": RANGES}), max_size=3
            )
            | JSON,
            "snippet": st.sampled_from(["def total(rows):\n    return 0\n", ""]) | JSON,
            "instruction": st.just("do it") | JSON,
            "selection": RANGES,
            "range": RANGES,
            "context": st.just({"diagnostics": []}) | JSON,
            "options": st.fixed_dictionaries({"verify": st.just("never") | JSON}) | JSON,
            "workDoneToken": st.text() | JSON,
            "partialResultToken": st.integers() | JSON,
            "capabilities": st.just({}) | JSON,
            "command": st.sampled_from(["applyEdit.apply", "applyEdit.cancel"]) | JSON,
            "arguments": st.lists(JSON, max_size=2) | JSON,
            "settings": JSON,
            "id": st.integers(0, 9) | JSON,
            "token": st.integers(0, 9) | JSON,
        },
    )
    | JSON
)
MESSAGES = st.fixed_dictionaries(
    {"method": st.sampled_from(METHODS)},
    optional={"id": st.integers(100, 10_000) | JSON, "params": PARAMS, "result": JSON},
)
RAW = st.sampled_from(
    [b"{", b"[]", b"null", b'{"jsonrpc": "2.0"}', b'"text"', b"[" * 5000, b"\xff\xfe", b"{}"]
)


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    path = write_answers(tmp_path_factory.mktemp("answers"), {"cart.py": TEXT, "b.py": TEXT})
    server = Listening("--target", "scripted", "--answers", str(path))
    yield server
    server.stop()
    assert "Traceback" not in server.errors.text, server.errors.text[-4000:]


def is_id(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


@settings(
    max_examples=500,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.booleans(), st.lists(MESSAGES | RAW, max_size=12))
def test_any_sequence_of_messages_is_answered(
    listening: Listening, handshake: bool, sequence: list[Any]
) -> None:
    client = listening.connect()
    if handshake:
        client.initialize({})
        client.open(URI, TEXT)
    asked = set()
    for item in sequence:
        if isinstance(item, bytes):
            client.send_bytes(b"Content-Length: %d\r\n\r\n" % len(item) + item)
            continue
        client.send({"jsonrpc": "2.0", **item})
        if is_id(item.get("id")) and isinstance(item["method"], str):
            asked.add(item["id"])
    asked.add(client.request("applyEdit/stats", key="the last one"))
    client.wait(lambda: asked <= client.answered.keys())
    for key in asked:
        answer = client.answered[key]
        assert ("result" in answer) != ("error" in answer)
        if "error" in answer:
            assert isinstance(answer["error"]["code"], int)
            assert "fault of apply-server" not in answer["error"]["message"], (answer, sequence)
    client.hang_up()


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: 9999999999\r\n\r\n",
        b"Content-Length: -1\r\n\r\n{}",
        b"x" * 200_000,
        b"Content-Length: 10\r\n\r\n{",
        b"\r\n\r\n\r\nnonsense\r\n\r\n",
    ],
    ids=["huge", "negative", "no line", "cut off", "no header"],
)
def test_a_stream_that_is_no_lsp_ends_or_is_skipped(listening: Listening, data: bytes) -> None:
    client = listening.connect()
    client.send_bytes(data)
    client.hang_up()
    assert "serverInfo" in json.dumps(handshake(listening.connect()))


def test_headers_of_any_case_and_number(listening: Listening) -> None:
    client = listening.connect()
    params = {"processId": None, "rootUri": None, "capabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    header = f"content-length:{len(body)}\r\nContent-Type: application/vscode-jsonrpc\r\n\r\n"
    client.send_bytes((header + body).encode())
    assert "result" in client.response(1)


def handshake(client: Client) -> Any:
    params = {"processId": None, "rootUri": None, "capabilities": {}}
    return client.call("initialize", params)["result"]


def test_a_notification_that_asks_for_an_answer_gets_one(listening: Listening) -> None:
    client = listening.connect()
    client.initialize({})
    document = {"uri": URI, "languageId": "python", "version": 1, "text": TEXT}
    for method, params in (
        ("textDocument/didOpen", {"textDocument": document}),
        ("$/cancelRequest", {"id": 1}),
        ("initialized", {}),
    ):
        error = client.call(method, params)["error"]
        assert error["code"] == -32600
        assert "is a notification" in error["message"]
