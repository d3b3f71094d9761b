"""Documents of every kind, as editors have them: what is edited is what the user sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsp.raw import Client, Listening, Message, edited

NEVER = {"verify": "never"}


@pytest.fixture(scope="module")
def listening() -> Iterator[Listening]:
    server = Listening()
    yield server
    server.stop()
    assert "Traceback" not in server.errors.text


def connect(listening: Listening, encoding: str = "utf-16", **options: object) -> Client:
    client = listening.connect()
    general = {"positionEncodings": [encoding, "utf-16"]}
    found = client.initialize({"general": general}, options={"verify": "never", **options})
    assert found["positionEncoding"] == encoding
    return client


@pytest.fixture
def client(listening: Listening) -> Iterator[Client]:
    client = connect(listening)
    yield client
    client.shut_down()


def spliced(client: Client, uri: str, before: str, after: str, version: int | None = 1) -> Message:
    block = f"<<<<<<< SEARCH\n{before}\n=======\n{after}\n>>>>>>> REPLACE\n"
    result: Message = client.apply(uri, version, snippet=block)["result"]
    return result


# Positions and lines


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_edits_are_in_the_negotiated_encoding(
    listening: Listening, encoding: str, eol: str
) -> None:
    client = connect(listening, encoding)
    text = f"é😋 = 'ö' # 𝒙{eol}b\x0c\u2028 = 1{eol}é😋x = 'é😋y'{eol}"
    client.open("file:///w/x.py", text)
    # The client's own change comes in the same encoding.
    width = {"utf-8": 6, "utf-16": 3, "utf-32": 2}[encoding]
    client.change("file:///w/x.py", 2, "z", (2, width, 2, width))
    text = text.replace("é😋x", "é😋zx")
    edit = spliced(client, "file:///w/x.py", "é😋zx = 'é😋y'", "é😋zx = 'é😋Y'", 2)["edits"]
    assert edited(text, edit, encoding) == text.replace("y'", "Y'")
    start = {"utf-8": 18, "utf-16": 12, "utf-32": 10}[encoding]
    assert edit[0]["range"]["start"] == {"line": 2, "character": start}
    client.shut_down()


def test_no_encoding_at_all_means_utf_16(listening: Listening) -> None:
    client = listening.connect()
    assert client.initialize({})["positionEncoding"] == "utf-16"
    client.shut_down()


@pytest.mark.parametrize(
    "text",
    ["a\x0cb\nold\n", "a\u2028b\r\nold", "a\x85\x0b\x1c\nold\n", "a\rold\rb\r"],
)
def test_only_lf_cr_and_both_end_a_line(client: Client, text: str) -> None:
    client.open("file:///w/x.py", text)
    result = spliced(client, "file:///w/x.py", "old", "new")
    assert edited(text, result["edits"]) == text.replace("old", "new")


def test_edits_are_minimal_so_that_cursors_and_marks_stay(client: Client) -> None:
    client.open("file:///w/x.py", "a = 1\nb = 2\nc = 3\n")
    result = client.apply("file:///w/x.py", snippet="a = 1\nnew = 0\nb = 2\nc = 3\n")["result"]
    assert [edit["newText"] for edit in result["edits"]] == ["new = 0\n"]
    assert result["edits"][0]["range"]["start"] == {"line": 1, "character": 0}
    assert result["edits"][0]["range"]["end"] == {"line": 1, "character": 0}


def test_two_open_files_are_not_mixed_up(client: Client) -> None:
    long, short = "x = 1\n" * 50 + "old\n", "old\n"
    client.open("file:///w/long.py", long)
    client.open("file:///w/short.py", short)
    for uri, text in (("file:///w/long.py", long), ("file:///w/short.py", short)):
        result = spliced(client, uri, "old", "new")
        assert edited(text, result["edits"]) == text.replace("old", "new")


def test_a_second_edit_finds_its_place_in_the_text_of_now(client: Client) -> None:
    text = "def a():\n    return 1\n\n\ndef b():\n    return 2\n"
    client.open("file:///w/x.py", text)
    client.change("file:///w/x.py", 2, "    # one\n    # two\n", (1, 0, 1, 0))
    now = text.replace("    return 1", "    # one\n    # two\n    return 1")
    result = client.apply("file:///w/x.py", 2, snippet="def b():\n    return 20\n")["result"]
    assert edited(now, result["edits"]) == now.replace("return 2", "return 20")


def test_the_whole_text_may_be_sent_as_a_change(client: Client) -> None:
    client.open("file:///w/x.js", "const a = 'x'\nconst b = 'y'\n", language="javascript")
    formatted = 'const a = "x";\nconst b = "y";\n'
    client.change("file:///w/x.js", 2, formatted)
    result = spliced(client, "file:///w/x.js", 'const a = "x";', 'const a = "z";', 2)
    assert edited(formatted, result["edits"]) == formatted.replace('"x"', '"z"')


# Names


@pytest.mark.parametrize(
    ("opened", "asked"),
    [
        ("file:///c%3A/p/x.yaml", "file:///C:/p/x.yaml"),
        ("file:///w/a%20b%23c%25.py", "file:///w/a%20b%23c%25.py"),
        ("file:///w/%C3%A9.py", "file:///w/é.py"),
    ],
)
def test_spellings_of_a_uri_find_the_open_document(client: Client, opened: str, asked: str) -> None:
    client.open(opened, "old\n", version=4)
    result = spliced(client, asked, "old", "new", 4)
    assert (result["version"], edited("old\n", result["edits"])) == (4, "new\n")


def test_an_untitled_document_needs_no_path(client: Client) -> None:
    client.open("untitled:Untitled-1", "x = 1\n")
    result = client.apply("untitled:Untitled-1", snippet="x = 2\n")["result"]
    assert edited("x = 1\n", result["edits"]) == "x = 2\n"


def test_a_notebook_cell_is_a_document(client: Client) -> None:
    uri, cell = "file:///w/n.ipynb", "vscode-notebook-cell:/w/n.ipynb#W0"
    document = {"uri": cell, "languageId": "python", "version": 1, "text": "x = 1\nold\n"}
    notebook = {
        "uri": uri, "notebookType": "jupyter-notebook", "version": 1,
        "cells": [{"kind": 2, "document": cell}],
    }  # fmt: skip
    params = {"notebookDocument": notebook, "cellTextDocuments": [document]}
    client.notify("notebookDocument/didOpen", params)
    place = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 5}}
    changes = {"document": {"uri": cell, "version": 2}, "changes": [{"range": place, "text": "7"}]}
    change = {"cells": {"textContent": [changes]}}
    version = {"uri": uri, "version": 2}
    client.notify("notebookDocument/didChange", {"notebookDocument": version, "change": change})
    result = spliced(client, cell, "old", "new", 2)
    assert edited("x = 7\nold\n", result["edits"]) == "x = 7\nnew\n"
    closing = {"notebookDocument": {"uri": uri}, "cellTextDocuments": [{"uri": cell}]}
    client.notify("notebookDocument/didClose", closing)
    error = client.apply(cell, snippet="x = 1\n")["error"]
    assert error["data"]["code"] == "InvalidRequest"
    assert "not open" in error["message"]


def test_notebooks_are_synchronised(listening: Listening) -> None:
    client = listening.connect()
    capabilities = {"notebookDocument": {"synchronization": {}}}
    found = client.initialize(capabilities)["notebookDocumentSync"]
    assert found["notebookSelector"] == [{"notebook": "*"}]
    client.shut_down()


@pytest.mark.parametrize("uri", ["git:/w/x.py", "output:log", "jdt://contents/a.class"])
def test_read_only_documents_are_refused_before_any_work(client: Client, uri: str) -> None:
    client.open(uri, "a\n")
    error = client.apply(uri, snippet="b\n", workDoneToken="bar")["error"]
    assert (error["code"], error["data"]["code"]) == (-32803, "ReadOnly")
    assert client.progress("bar") == []


# Closed files


@pytest.mark.parametrize("name", ["a b.py", "a#b.py", "a%20b.py", "é😋.py"])
def test_a_closed_file_is_read_by_its_decoded_name(
    client: Client, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    file.write_bytes(b"x\r\nold\r\n")
    result = spliced(client, file.as_uri(), "old", "new", None)
    assert edited("x\r\nold\r\n", result["edits"]) == "x\r\nnew\r\n"


def test_a_closed_file_that_may_not_be_written(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("old\n")
    file.chmod(0o444)
    error = client.apply(file.as_uri(), None, snippet="new\n")["error"]
    assert error["data"]["code"] == "ReadOnly"


def test_a_closed_file_in_an_unknown_encoding(listening: Listening, tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_bytes("é = 'old'\n".encode("cp1252"))
    client = connect(listening)
    error = client.apply(file.as_uri(), None, snippet="new\n")["error"]
    assert error["data"]["code"] == "UnsupportedEncoding"
    client.notify("workspace/didChangeConfiguration", {"settings": {"encoding": "cp1252"}})
    result = spliced(client, file.as_uri(), "é = 'old'", "é = 'new'", None)
    assert edited("é = 'old'\n", result["edits"]) == "é = 'new'\n"
    client.shut_down()


def test_half_a_character_in_a_buffer_is_refused(client: Client) -> None:
    client.open("file:///w/x.py", "a = '\ud83d'\nold\n")
    error = client.apply("file:///w/x.py", snippet="old\n")["error"]
    assert error["data"]["code"] == "UnsupportedEncoding"


def test_a_file_of_five_megabytes(client: Client) -> None:
    line = "value = compute(some_argument, another_argument)  # and a comment\n"
    text = line * (5_000_000 // len(line)) + "old\n"
    client.open("file:///w/x.py", text)
    client.change("file:///w/x.py", 2, "# typed\n", (3, 0, 3, 0))
    result = spliced(client, "file:///w/x.py", "old", "new", 2)
    (edit,) = result["edits"]
    assert (edit["newText"], edit["range"]["start"]["line"]) == ("new", text.count("\n"))


# Documents that are opened after the first request for them


@pytest.mark.parametrize("kind", ["untitled", "no folder", "new", "undecodable", "read-only"])
def test_a_buffer_may_be_opened_after_the_request(
    client: Client, tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "x.py"
    uri = {
        "untitled": "untitled:Untitled-7",
        "no folder": (tmp_path / "none" / "x.py").as_uri(),
    }.get(kind, file.as_uri())
    if kind in ("undecodable", "read-only"):
        file.write_bytes("é\n".encode("cp1252"))
        file.chmod(0o444 if kind == "read-only" else 0o644)
    key = client.start(uri, snippet="<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n")
    client.call("applyEdit/stats")
    client.open(uri, "a\nold\n")
    response = client.response(key)
    assert edited("a\nold\n", response["result"]["edits"]) == "a\nnew\n"
    assert response["result"]["version"] == 1


def test_a_document_that_is_opened_late_in_another_version(client: Client) -> None:
    key = client.start("untitled:Untitled-8", 3, snippet="x\n")
    client.call("applyEdit/stats")
    client.open("untitled:Untitled-8", "old\n", 4)
    assert client.response(key)["error"]["data"]["code"] == "DocumentChanged"


def test_a_document_that_is_never_opened(client: Client) -> None:
    error = client.apply("untitled:Untitled-9", snippet="x\n")["error"]
    assert error["data"]["code"] == "InvalidRequest"
    assert error["message"] == "Untitled-9 is not open in the editor, and it is no file."


def test_waiting_for_a_document_can_be_cancelled(client: Client) -> None:
    key = client.start("untitled:Untitled-10", snippet="x\n")
    assert client.call("applyEdit/cancel")["result"] == {"cancelled": 1}
    assert client.response(key)["error"]["data"]["code"] == "Cancelled"
