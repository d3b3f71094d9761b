"""A buffer that begins with its file's byte order mark: no edit sees it, every column counts it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from apply_server.document import Document, PositionEncoding
from apply_server.request import EditRequest
from tests.lsp.raw import Client, Listening, edited, write_answers

BOM = "\ufeff"
ENCODINGS: tuple[PositionEncoding, ...] = ("utf-8", "utf-16", "utf-32")
BODY = "def first(é):\n    return 1\n\n\ndef second():\n    return 2\n"
TEXT = BOM + BODY
RESULT = TEXT.replace("(é)", "(é, x)")
URI, LONGER = "file:///w/mark.py", "file:///w/longer.py"
SNIPPETS = {
    "search_replace": (
        "<<<<<<< SEARCH\n{}def first(é):\n=======\n{}def first(é, x):\n>>>>>>> REPLACE\n"
    ),
    "unified_diff": "@@ -1,2 +1,2 @@\n-{}def first(é):\n+{}def first(é, x):\n     return 1\n",
    "v4a": (
        "*** Begin Patch\n*** Update File: mark.py\n@@\n-{}def first(é):\n+{}def first(é, x):\n"
        "     return 1\n*** End Patch\n"
    ),
    "lazy": "{}def first(é, x):\n    return 1\n\n# ... existing code ...\n",
    "patch": "{}def first(é, x):\n    return 1\n",
    "full file": "{}" + BODY.replace("(é)", "(é, x)"),
}


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    answers = {"mark.py": RESULT.removeprefix(BOM), "longer.py": "import os\n\n" + BODY}
    path = write_answers(tmp_path_factory.mktemp("answers"), answers)
    server = Listening("--target", "scripted", "--answers", str(path))
    yield server
    server.stop()
    assert "Traceback" not in server.errors.text


def connect(listening: Listening, encoding: PositionEncoding) -> Client:
    client = listening.connect()
    client.initialize({"general": {"positionEncodings": [encoding]}})
    client.open(URI, TEXT)
    client.open(LONGER, TEXT)
    return client


@pytest.fixture(scope="module", params=ENCODINGS)
def encoding(request: pytest.FixtureRequest) -> PositionEncoding:
    encoding: PositionEncoding = request.param
    return encoding


@pytest.fixture(scope="module")
def client(listening: Listening, encoding: PositionEncoding) -> Iterator[Client]:
    client = connect(listening, encoding)
    yield client
    client.shut_down()


@pytest.mark.parametrize("mark", ["", BOM], ids=["plain", "quoted"])
@pytest.mark.parametrize("dialect", SNIPPETS)
@pytest.mark.parametrize("verify", ["never", "always"])
def test_a_snippet_that_changes_the_first_line(
    client: Client, encoding: PositionEncoding, dialect: str, mark: str, verify: str
) -> None:
    snippet = SNIPPETS[dialect].format(mark, mark)
    token = f"{dialect} {mark} {verify} {encoding}"
    options = {"verify": verify}
    response = client.apply(URI, snippet=snippet, options=options, partialResultToken=token)
    (edit,) = response["result"]["edits"]
    assert edited(TEXT, [edit], encoding) == RESULT
    before = {"utf-8": 3 + 12, "utf-16": 1 + 11, "utf-32": 1 + 11}[encoding]
    assert edit["range"]["start"] == {"line": 0, "character": before}
    partial = client.progress(token)
    shown = [value["edits"] for value in partial if value["kind"] in ("preview", "delta")]
    assert shown == ([] if verify == "never" else [[edit]])


def test_lines_before_the_first_one_come_after_the_mark(
    client: Client, encoding: PositionEncoding
) -> None:
    result = client.apply(LONGER, instruction="x")["result"]
    assert edited(TEXT, result["edits"], encoding) == f"{BOM}import os\n\n{BODY}"


def test_a_selection_from_the_first_line_on(client: Client, encoding: PositionEncoding) -> None:
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 0}}
    never = {"verify": "never"}
    snippet = SNIPPETS["search_replace"].format(BOM, BOM)
    result = client.apply(URI, snippet=snippet, selection=place, options=never)["result"]
    assert edited(TEXT, result["edits"], encoding) == RESULT


def test_an_instruction_in_the_first_line_is_found(client: Client) -> None:
    client.open("file:///w/asked.py", f"{BOM}# edit: say hello\n{BODY}")
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    params = {
        "textDocument": {"uri": "file:///w/asked.py"},
        "range": place,
        "context": {"diagnostics": []},
    }
    (found,) = client.call("textDocument/codeAction", params)["result"]
    assert found["arguments"][0]["instruction"] == "say hello"


def test_the_editor_applies_and_we_agree_on_the_text(listening: Listening) -> None:
    client = connect(listening, "utf-16")

    def apply(request: dict[str, object]) -> object:
        client.change(URI, 2, RESULT)
        return {"applied": True}

    client.answer = apply
    response = client.command(URI, snippet=SNIPPETS["patch"].format(""))
    assert response["result"]["status"] == "applied"
    client.shut_down()


def test_a_mark_that_a_snippet_quotes_is_the_files_own() -> None:
    document = Document.from_text("a\n")
    quoted = f"{BOM}a\n-{BOM}a\n+{BOM}b\n {BOM}c = '{BOM}'\n"
    request = EditRequest(document, "x.py", snippet=quoted)
    assert request.snippet == f"a\n-a\n+b\n c = '{BOM}'\n"
    # Where a line of the file itself begins with one, it is text.
    document = Document.from_text(f"a\n{BOM}b\n")
    assert EditRequest(document, "x.py", snippet=quoted).snippet == quoted
