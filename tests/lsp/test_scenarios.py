"""What users of such tools have reported, as far as a server can get it wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsp.raw import Client, Listening, edited, write_answers

URI = "file:///w/x.py"
TEXT = "".join(f"value_{number} = {number}\n" for number in range(100))
SNIPPET = "<<<<<<< SEARCH\nvalue_7 = 7\n=======\nvalue_7 = 70\n>>>>>>> REPLACE\n"
RESULT = TEXT.replace("value_7 = 7\n", "value_7 = 70\n")


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    path = write_answers(tmp_path_factory.mktemp("answers"), {"x.py": RESULT, "y.py": TEXT[:200]})
    server = Listening("--target", "scripted", "--answers", str(path), "--pass-delay-ms", "20")
    yield server
    server.stop()
    assert "Traceback" not in server.errors.text


@pytest.fixture
def client(listening: Listening) -> Iterator[Client]:
    client = listening.connect()
    client.initialize()
    yield client
    client.shut_down()


def test_a_file_that_another_program_writes_meanwhile(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(TEXT)
    client.notify("workspace/didChangeConfiguration", {"settings": {"proposer": "none"}})
    key = client.start(file.as_uri(), None, instruction="x", partialResultToken="p")
    client.wait(lambda: client.progress("p"))
    file.write_text("z\n")
    client.notify("workspace/didChangeConfiguration", {"settings": {"proposer": "auto"}})
    error = client.response(key)["error"]
    assert error["data"]["code"] == "DocumentChanged"
    assert "changed since it was read" in error["message"]
    assert "permission" not in error["message"]
    assert file.read_text() == "z\n"


def test_a_file_over_the_limit_names_both_numbers(client: Client) -> None:
    client.open(URI, TEXT)
    client.notify("workspace/didChangeConfiguration", {"settings": {"maxFileTokens": 50}})
    error = client.apply(URI, instruction="x")["error"]
    assert error["data"]["code"] == "DocumentTooLong"
    needed = error["data"]["details"]["needed"]
    assert needed > 50
    assert f"Needs about {needed} tokens; limit is 50. Nothing was changed." == error["message"]


def test_an_answer_that_loses_most_of_the_file_is_blocked_with_its_diff(client: Client) -> None:
    client.open("file:///w/y.py", TEXT)
    error = client.apply("file:///w/y.py", instruction="x")["error"]
    assert error["data"]["code"] == "GuardBlocked"
    assert error["data"]["details"]["diff"].startswith("--- a/y.py\n+++ b/y.py\n")
    guards = error["data"]["details"]["guards"]
    allowed = client.apply("file:///w/y.py", instruction="x", options={"allowedGuards": guards})[
        "result"
    ]
    assert len(edited(TEXT, allowed["edits"])) < 210
    assert allowed["report"]["warnings"]


def test_several_places_are_listed(client: Client) -> None:
    client.open(URI, "if a:\n    retry()\nif b:\n    retry()\nif c:\n    retry()\n")
    block = "<<<<<<< SEARCH\n    retry()\n=======\n    retry(3)\n>>>>>>> REPLACE\n"
    error = client.apply(URI, snippet=block, options={"verify": "never"})["error"]
    assert error["data"]["code"] == "AmbiguousTarget"
    assert error["data"]["details"]["lines"] == [2, 4, 6]
    # A selection says which one is meant.
    place = {"start": {"line": 2, "character": 0}, "end": {"line": 4, "character": 0}}
    result = client.apply(URI, snippet=block, selection=place, options={"verify": "never"})
    (edit,) = result["result"]["edits"]
    assert edit["range"]["start"]["line"] == 3


def test_every_job_ends_in_exactly_one_state(client: Client) -> None:
    client.open(URI, TEXT)
    ends = {
        "applied": {"snippet": SNIPPET},
        "unchanged": {"snippet": "value_3 = 3\n", "options": {"verify": "never"}},
        "AmbiguousTarget": {
            "snippet": SNIPPET.replace("7 = 7", "q = q"),
            "options": {"verify": "never"},
        },
        "InvalidRequest": {},
    }
    for state, params in ends.items():
        client.apply(URI, workDoneToken=state, **params)
        shown = client.progress(state)
        assert [value["kind"] for value in shown].count("end") == 1
        assert shown[-1] == {"kind": "end", "message": state}


def test_applying_to_an_open_file_opens_no_other(client: Client) -> None:
    client.answer = lambda request: {"applied": True}
    client.open(URI, TEXT)
    client.command(URI, snippet=SNIPPET, options={"verify": "never"})
    (asked,) = client.of("workspace/applyEdit")
    (change,) = asked["edit"]["documentChanges"]
    assert change["textDocument"]["uri"] == URI
    assert client.of("window/showDocument") == []
    assert client.of("window/showMessage") == []


def test_settings_that_need_a_model_are_refused_without_one(client: Client) -> None:
    client.open(URI, TEXT)
    client.notify("workspace/didChangeConfiguration", {"settings": {"temperature": 0.7}})
    error = client.apply(URI, instruction="x")["error"]
    assert error["data"]["code"] == "InvalidRequest"
    assert "takes no temperature" in error["message"]
    client.notify("workspace/didChangeConfiguration", {"settings": {"temperature": 0}})
    client.apply(URI, instruction="x")["result"]
