"""The file is read while the user types the edit; whoever asks in earnest comes first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.support import save_model
from tests.lsp.raw import Client, Listening

URI = "file:///w/mod.py"
TEXT = "value = 1\n" * 20


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    server = Listening("--model", str(save_model(tmp_path_factory.mktemp("model"))))
    yield server
    server.stop()
    assert "Traceback" not in server.errors.text, server.errors.text[:3000]


def connect(listening: Listening, **options: object) -> Client:
    client = listening.connect()
    client.initialize(options={"device": "cpu", "dtype": "float32", **options})
    client.open(URI, TEXT)
    return client


def prepare(client: Client, uri: str = URI) -> int:
    answer = client.call("applyEdit/prepare", {"textDocument": {"uri": uri, "version": 1}})
    known: int = answer["result"]["knownTokens"]
    return known


def test_the_files_part_of_the_prompt_is_computed_once(listening: Listening) -> None:
    client = connect(listening)
    assert prepare(client) == 384
    assert prepare(client) == 384
    client.change(URI, 2, "# a note that makes the file longer\n" * 4, (20, 0, 20, 0))
    assert prepare(client) == 512
    client.notify("applyEdit/prepare", {"textDocument": {"uri": URI}})
    client.shut_down()


def test_an_edit_finds_what_was_computed_ahead_and_is_not_hindered(listening: Listening) -> None:
    client = connect(listening)
    long = "file:///w/long.py"
    client.open(long, TEXT * 5)
    waiting = client.request("applyEdit/prepare", {"textDocument": {"uri": long}})
    error = client.apply(URI, instruction="x", options={})["error"]
    assert error["data"]["code"] == "TruncatedOutput", "a random model babbles, but it was asked"
    assert client.response(waiting)["result"]["knownTokens"] < 1100
    client.shut_down()


@pytest.mark.parametrize(
    ("options", "uri"),
    [({"verify": "never"}, URI), ({"model": "no-such-model"}, URI), ({}, "file:///w/closed.py")],
)
def test_there_may_be_nothing_to_do(
    listening: Listening, options: dict[str, object], uri: str
) -> None:
    client = connect(listening, **options)
    assert prepare(client, uri) == 0
    client.shut_down()


def test_a_bad_request_is_told(listening: Listening) -> None:
    client = connect(listening)
    error = client.call("applyEdit/prepare", {"textDocument": 3})["error"]
    assert (error["code"], error["data"]["code"]) == (-32602, "InvalidRequest")
    client.shut_down()


def test_who_knows_the_answer_computes_nothing_ahead(tmp_path: Path) -> None:
    answers = tmp_path / "answers.json"
    answers.write_text("{}")
    server = Listening("--target", "scripted", "--answers", str(answers))
    client = connect(server)
    assert prepare(client) == 0
    client.shut_down()
    server.stop()
