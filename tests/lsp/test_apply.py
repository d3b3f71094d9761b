"""applyEdit/apply over a real process: results, partial results in order, and refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsp.raw import Client, Spawned, edited, write_answers

URI = "file:///w/a%20b/cart.py"
TEXT = "def total(rows):\n    return sum(rows)\n\n\ndef show(rows):\n    print(total(rows))\n"
SNIPPET = "def show(rows):\n    print('Total:', total(rows))\n"
RESULT = TEXT.replace("print(total", "print('Total:', total")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spawned]:
    folder = tmp_path_factory.mktemp("answers")
    answers = {
        "cart.py": RESULT,
        "same.py": TEXT,
        "worse.py": "",
        "long.py": TEXT + "x = 1\n" * 999,
    }
    path = write_answers(folder, answers)
    with Spawned("--target", "scripted", "--answers", str(path)) as client:
        client.initialize()
        yield client
        assert client.exit() == 0
        assert "Traceback" not in client.errors.text


def test_the_result_is_the_edits_of_the_version_asked_for(server: Client) -> None:
    server.open(URI, TEXT, version=7)
    response = server.apply(URI, 7, snippet=SNIPPET)["result"]
    assert (response["status"], response["version"]) == ("changed", 7)
    assert edited(TEXT, response["edits"]) == RESULT
    (edit,) = response["edits"]
    assert edit["range"]["start"] == {"line": 5, "character": 10}
    report = response["report"]
    assert (report["added"], report["removed"], report["verified"]) == (1, 1, True)
    assert report["copiedShare"] == round(5 / 6, 4)
    assert report["targetPasses"] >= 1
    assert report["acceptedTokens"] <= report["draftedTokens"]


def test_partial_results_come_in_order_and_before_the_response(server: Client) -> None:
    server.open(URI, TEXT)
    key = server.start(URI, snippet=SNIPPET, partialResultToken="p", workDoneToken="w")
    server.response(key)
    values = server.progress("p")
    assert values[0]["kind"] == "preview"
    assert edited(TEXT, values[0]["edits"]) == RESULT
    kinds = {value["kind"] for value in values[1:]}
    assert kinds == {"verified"}  # the preview was right, so there is nothing to correct
    last = values[-1]
    assert (last["originalLine"], last["resultLine"], last["share"]) == (6, 6, 1.0)
    bar = [value["kind"] for value in server.progress("w")]
    assert (bar[0], bar[-1], set(bar[1:-1])) == ("begin", "end", {"report"})
    assert server.order[-1] == server.answered[key]


def test_a_model_that_disagrees_with_the_preview_corrects_it(server: Client) -> None:
    server.open("file:///w/same.py", TEXT)
    response = server.apply("file:///w/same.py", snippet=SNIPPET, partialResultToken="q")["result"]
    assert (response["status"], response["edits"]) == ("unchanged", [])
    deltas = [value for value in server.progress("q") if value["kind"] == "delta"]
    assert [delta["edits"] for delta in deltas] == [[]]
    assert deltas[0]["fromLine"] <= 5 < deltas[0]["toLine"]


def test_a_second_edit_of_an_edited_document_starts_from_its_text(server: Client) -> None:
    server.open(URI, TEXT)
    server.change(URI, 2, "# note\n", (0, 0, 0, 0))
    error = server.apply(URI, 1, snippet=SNIPPET)["error"]
    assert (error["code"], error["data"]["code"]) == (-32801, "DocumentChanged")
    assert error["data"]["details"] == {"version": 2, "requested": 1}
    options = {"verify": "never"}
    response = server.apply(URI, 2, snippet=SNIPPET, options=options)["result"]
    assert edited("# note\n" + TEXT, response["edits"]) == "# note\n" + RESULT
    assert response["report"]["verified"] is False


@pytest.mark.parametrize(
    ("params", "number", "code"),
    [
        ({}, -32602, "InvalidRequest"),
        ({"snippet": 3}, -32602, "InvalidRequest"),
        ({"snippet": "x", "options": {"verify": "maybe"}}, -32602, "InvalidRequest"),
        ({"snippet": "x", "options": {"allowedGuards": ["nope"]}}, -32602, "InvalidRequest"),
        ({"snippet": "x", "selection": {"start": {"line": 0}}}, -32602, "InvalidRequest"),
        ({"instruction": "x", "textDocument": {"uri": "nothing"}}, -32602, "InvalidRequest"),
        ({"instruction": "x", "textDocument": {"uri": "git:/a.py"}}, -32803, "ReadOnly"),
        (
            {"instruction": "x", "textDocument": {"uri": "file:///w/no.py"}},
            -32602,
            "InvalidRequest",
        ),
        (
            {"instruction": "x", "textDocument": {"uri": "file:///w/worse.py"}},
            -32803,
            "GuardBlocked",
        ),
        (
            {"instruction": "x", "textDocument": {"uri": "file:///w/long.py"}},
            -32803,
            "TruncatedOutput",
        ),
        (
            {"instruction": "x", "textDocument": {"uri": "file:///w/unknown.py"}},
            -32803,
            "ModelUnavailable",
        ),
        (
            {
                "snippet": "<<<<<<< SEARCH\nq\n=======\nx\n>>>>>>> REPLACE\n",
                "options": {"verify": "never"},
            },
            -32803,
            "AnchorNotFound",
        ),
        (
            {
                "snippet": "<<<<<<< SEARCH\n\n=======\nx\n\n>>>>>>> REPLACE\n",
                "options": {"verify": "never"},
            },
            -32803,
            "AmbiguousTarget",
        ),
    ],
    ids=lambda value: json.dumps(value)[:40] if isinstance(value, dict) else str(value),
)
def test_refusals_have_a_code_and_a_sentence(
    server: Client, params: dict[str, object], number: int, code: str
) -> None:
    for name in ("cart.py", "worse.py", "long.py", "unknown.py"):
        server.open(f"file:///w/{name}", TEXT)
    given = {"textDocument": {"uri": "file:///w/cart.py"}, **params}
    error = server.call("applyEdit/apply", given)["error"]
    assert (error["code"], error["data"]["code"]) == (number, code)
    assert error["message"] == error["data"]["message"]
    assert error["message"].endswith((".", ")"))


def test_unsaved_text_beats_the_disk_and_closed_files_are_read(
    server: Client, tmp_path: Path
) -> None:
    file = tmp_path / "cart.py"
    file.write_bytes(TEXT.replace("\n", "\r\n").encode())
    uri = file.as_uri()
    options = {"verify": "never"}
    closed = server.apply(uri, None, snippet=SNIPPET, options=options)["result"]
    assert closed["version"] is None
    on_disk = file.read_bytes().decode()
    assert edited(on_disk, closed["edits"]) == RESULT.replace("\n", "\r\n")
    server.open(uri, TEXT + "\nimportant = True\n")
    opened = server.apply(uri, snippet=SNIPPET, options=options)["result"]
    assert edited(TEXT + "\nimportant = True\n", opened["edits"]) == RESULT + "\nimportant = True\n"
    assert file.read_bytes().decode() == on_disk
