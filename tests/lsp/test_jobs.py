"""Jobs: one for each document, several at once, stopped in every way, never half applied."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.raw import Client, Listening, Message, edited, write_answers

URI, OTHER = "file:///w/slow.py", "file:///w/other.py"
TEXT = "".join(f"value_{number} = {number}\n" for number in range(400))
RESULT = TEXT.replace("value_7 = 7\n", "value_7 = 'seven'\n")
SNIPPET = "<<<<<<< SEARCH\nvalue_7 = 7\n=======\nvalue_7 = 'seven'\n>>>>>>> REPLACE\n"
# One token a pass, so that the model is busy for minutes.
PLAIN = {"proposer": "none"}


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    answers = {"slow.py": RESULT, "other.py": RESULT}
    path = write_answers(tmp_path_factory.mktemp("answers"), answers)
    server = Listening("--target", "scripted", "--answers", str(path), "--pass-delay-ms", "50")
    yield server
    server.stop()
    assert "Traceback" not in server.errors.text, server.errors.text[:3000]


@pytest.fixture
def client(listening: Listening) -> Iterator[Client]:
    client = listening.connect()
    client.initialize(options=PLAIN)
    client.open(URI, TEXT)
    client.open(OTHER, TEXT)
    yield client
    client.shut_down()


def begin(client: Client, uri: str = URI, **more: Any) -> Any:
    """Start a job and wait until the model is at work on it."""
    key = client.start(uri, snippet=SNIPPET, partialResultToken=f"p{uri}", **more)
    client.wait(
        lambda: (
            any(value["kind"] == "verified" for value in client.progress(f"p{uri}"))
            or key in client.answered
        )
    )
    return key


def assert_cancelled(response: Message) -> None:
    error = response["error"]
    assert (error["code"], error["data"]["code"]) == (-32800, "Cancelled")
    assert error["message"] == "Cancelled. Nothing was changed."


def stop_by_request(client: Client, key: object) -> None:
    client.notify("$/cancelRequest", {"id": key})


def stop_by_bar_of(client: Client, token: str) -> None:
    client.notify("window/workDoneProgress/cancel", {"token": token})


def stop_by_bar(client: Client, key: object) -> None:
    stop_by_bar_of(client, "bar")


def stop_by_document(client: Client, key: object) -> None:
    answer = client.call("applyEdit/cancel", {"textDocument": {"uri": URI}})
    assert answer["result"] == {"cancelled": 1}


def stop_by_notification(client: Client, key: object) -> None:
    client.notify("applyEdit/cancel", {"textDocument": {"uri": URI}})


def stop_all(client: Client, key: object) -> None:
    assert client.call("applyEdit/cancel")["result"] == {"cancelled": 1}


def stop_by_command(client: Client, key: object) -> None:
    params = {"command": "applyEdit.cancel", "arguments": [{"textDocument": {"uri": URI}}]}
    assert client.call("workspace/executeCommand", params)["result"] == {"cancelled": 1}


WAYS = [
    stop_by_request, stop_by_bar, stop_by_document, stop_by_notification, stop_all, stop_by_command,
]  # fmt: skip


@pytest.mark.parametrize("stop", WAYS)
def test_every_way_to_cancel_ends_the_request_and_its_progress(client: Client, stop: Any) -> None:
    key = begin(client, workDoneToken="bar")
    stop(client, key)
    assert_cancelled(client.response(key))
    assert client.progress("bar")[-1] == {"kind": "end", "message": "Cancelled"}
    reported = len(client.order)
    client.call("applyEdit/stats")
    client.call("applyEdit/stats")
    assert len(client.order) == reported + 2, "a cancelled job says nothing more"
    # The document is free again at once, and the model with the next pass.
    again = client.apply(URI, snippet=SNIPPET, options={"verify": "never"})["result"]
    assert edited(TEXT, again["edits"]) == RESULT


def test_who_has_to_wait_for_the_model_is_told_so(client: Client) -> None:
    first = begin(client, workDoneToken="first")
    second = client.start(OTHER, snippet=SNIPPET, workDoneToken="second")
    client.wait(lambda: any("Waiting" in str(value) for value in client.progress("second")))
    stop_by_bar_of(client, "first")
    assert_cancelled(client.response(first))
    client.wait(lambda: any("tokens/s" in str(value) for value in client.progress("second")))
    assert not any("Waiting" in str(value) for value in client.progress("first"))
    stop_by_bar_of(client, "second")
    assert_cancelled(client.response(second))


def test_a_command_is_cancelled_like_a_request(client: Client) -> None:
    argument = {"textDocument": {"uri": URI, "version": 1}, "instruction": "x"}
    params = {"command": "applyEdit.apply", "arguments": [argument], "workDoneToken": "bar"}
    key = client.request("workspace/executeCommand", params)
    client.wait(lambda: client.progress("bar"))
    client.notify("$/cancelRequest", {"id": key})
    assert_cancelled(client.response(key))
    assert client.of("workspace/applyEdit") == []


def test_cancelling_nothing_is_harmless(client: Client) -> None:
    client.notify("$/cancelRequest", {"id": 999})
    client.notify("window/workDoneProgress/cancel", {"token": "none"})
    client.notify("applyEdit/cancel", None)
    client.notify("applyEdit/cancel", {"textDocument": 3})
    assert client.call("applyEdit/cancel")["result"] == {"cancelled": 0}


def test_one_job_for_a_document_several_for_a_client(client: Client) -> None:
    key = begin(client)
    error = client.apply("file:///w/slo%77.py", instruction="x")["error"]
    assert (error["code"], error["data"]["code"]) == (-32803, "Busy")
    assert "slow.py" in error["message"]
    waiting = client.start(OTHER, instruction="x")
    spliced = client.apply("file:///w/slow.py", snippet=SNIPPET, options={"verify": "never"})
    assert spliced["error"]["data"]["code"] == "Busy"
    client.notify("$/cancelRequest", {"id": waiting})
    assert_cancelled(client.response(waiting))
    assert key not in client.answered
    stop_by_request(client, key)
    assert_cancelled(client.response(key))


def test_a_preview_and_a_merge_do_not_wait_for_the_model(client: Client) -> None:
    key = begin(client)
    merged = client.apply(OTHER, snippet=SNIPPET, options={"verify": "never"})["result"]
    assert edited(TEXT, merged["edits"]) == RESULT
    waiting = client.start(OTHER, snippet=SNIPPET, partialResultToken="q")
    client.wait(lambda: client.progress("q"))
    (preview,) = client.progress("q")
    assert preview["kind"] == "preview"
    assert edited(TEXT, preview["edits"]) == RESULT
    assert {key, waiting} & client.answered.keys() == set()
    client.call("applyEdit/cancel")


def test_typing_ends_the_job_and_keeps_what_was_typed(client: Client) -> None:
    key = begin(client, workDoneToken="bar")
    client.change(URI, 2, "# note\n", (0, 0, 0, 0))
    error = client.response(key)["error"]
    assert (error["code"], error["data"]["code"]) == (-32801, "DocumentChanged")
    assert error["message"] == (
        "slow.py changed since it was read. Nothing was changed; run the edit again."
    )
    assert client.progress("bar")[-1]["message"] == "DocumentChanged"
    again = client.apply(URI, 2, snippet=SNIPPET, options={"verify": "never"})["result"]
    assert edited("# note\n" + TEXT, again["edits"]) == "# note\n" + RESULT


def test_opening_the_same_text_again_is_no_change(client: Client) -> None:
    key = begin(client)
    client.open(URI, TEXT)
    assert client.call("applyEdit/cancel")["result"] == {"cancelled": 1}, "it was still at work"
    assert_cancelled(client.response(key))


@pytest.mark.parametrize(("text", "version"), [("# note\n" + TEXT, 1), (TEXT, 2)])
def test_opening_another_text_or_version_ends_the_job(
    client: Client, text: str, version: int
) -> None:
    key = begin(client)
    client.open(URI, text, version)
    assert client.response(key)["error"]["data"]["code"] == "DocumentChanged"


@pytest.mark.parametrize("typed", ["", "# note\n"])
def test_a_buffer_that_is_opened_after_the_request_is_what_is_edited(
    client: Client, tmp_path: Path, typed: str
) -> None:
    path = tmp_path / "late.py"
    path.write_text(TEXT)
    key = client.start(path.as_uri(), snippet=SNIPPET, options={"verify": "never"})
    client.open(path.as_uri(), typed + TEXT)
    response = client.response(key)
    if "error" in response:  # the file had been read, and the buffer is another text
        assert typed
        assert response["error"]["data"]["code"] == "DocumentChanged"
    else:
        assert edited(typed + TEXT, response["result"]["edits"]) == typed + RESULT


def test_a_closed_document_ends_its_job(client: Client) -> None:
    key = begin(client)
    client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    error = client.response(key)["error"]
    assert error["data"]["code"] == "DocumentChanged"
    assert "closed" in error["message"]


def test_time_runs_out(client: Client) -> None:
    client.notify("workspace/didChangeConfiguration", {"settings": {"timeoutMs": 200}})
    error = client.apply(URI, instruction="x")["error"]
    assert error["data"]["code"] == "TruncatedOutput"
    assert error["data"]["details"] == {"timeoutMs": 200}
    assert "longer than 200 ms" in error["message"]
    # A merge needs no model and has no limit.
    client.apply(URI, snippet=SNIPPET, options={"verify": "never"})["result"]


def test_the_event_loop_answers_while_the_model_works(client: Client) -> None:
    key = begin(client)
    for _ in range(20):
        client.call("applyEdit/stats")
    assert key not in client.answered
    stop_by_request(client, key)
    assert_cancelled(client.response(key))


def test_shutdown_ends_what_is_running(listening: Listening) -> None:
    client = listening.connect()
    client.initialize(options=PLAIN)
    client.open(URI, TEXT)
    key = begin(client)
    client.shut_down()
    assert_cancelled(client.answered[key])
    client.wait(lambda: client.closed)


def test_a_client_that_is_gone_frees_the_model(listening: Listening, client: Client) -> None:
    gone = listening.connect()
    gone.initialize(options=PLAIN)
    gone.open(URI, TEXT)
    begin(gone)
    gone.hang_up()
    # The model works for one client at a time: progress here means that it has let go there.
    key = begin(client)
    assert key not in client.answered
    stop_by_request(client, key)


def test_a_thousand_cancels_at_random_moments(tmp_path: Path) -> None:
    """Each request is answered once, with a whole result or Cancelled; nothing is left behind."""
    path = write_answers(tmp_path, {"slow.py": lines_of(RESULT)})
    server = Listening("--target", "scripted", "--answers", str(path), "--pass-delay-ms", "2")
    client = server.connect()
    client.initialize()
    short = lines_of(TEXT)
    client.open(URI, short)
    moments = random.Random(5)
    states = Counter[str]()
    threads, memory = 0, 0
    for count in range(1000):
        options = {} if count % 4 else {"verify": "never"}
        key = client.start(URI, snippet=SNIPPET, options=options)
        time.sleep(moments.choice((0, 0, 0.001, 0.003, 0.01, 0.02, 0.04)))
        client.notify("$/cancelRequest", {"id": key})
        response = client.response(key)
        states["done" if "result" in response else "cancelled"] += 1
        if "result" in response:
            assert edited(short, response["result"]["edits"]) == lines_of(RESULT)
        else:
            assert_cancelled(response)
        if count == 200:
            threads, memory = usage(server)
    assert min(states["done"], states["cancelled"]) > 50, states
    after, used = usage(server)
    assert after <= threads
    assert used < memory * 1.2
    assert edited(short, client.apply(URI, snippet=SNIPPET)["result"]["edits"]) == lines_of(RESULT)
    assert server.stop() == 128 + signal.SIGTERM
    assert "Traceback" not in server.errors.text


def lines_of(text: str) -> str:
    """The beginning, so that a thousand requests don't take long."""
    return "".join(text.splitlines(keepends=True)[:60])


def usage(listening: Listening) -> tuple[int, int]:
    """Threads, and memory in kB."""
    with open(f"/proc/{listening.process.pid}/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["Threads"]), int(fields["VmRSS"].split()[0])
