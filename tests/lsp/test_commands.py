"""workspace/executeCommand and code actions: one edit, applied by the editor, checked by us."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.raw import CAPABILITIES, Client, Listening, Message, edited, write_answers

URI = "file:///w/cart.py"
TEXT = "def total(rows):\n    return sum(rows)\n\n\ndef show(rows):\n    print(total(rows))\n"
SNIPPET = "def show(rows):\n    print('Total:', total(rows))\n"
RESULT = TEXT.replace("print(total", "print('Total:', total")
NEVER = {"verify": "never"}


class Editor:
    """Answers workspace/applyEdit as `respond` says, and keeps what it was asked."""

    def __init__(self) -> None:
        self.edits: list[Message] = []
        self.respond: Callable[[Message], Any] = lambda params: {"applied": True}

    def __call__(self, request: Message) -> Any:
        if request["method"] != "workspace/applyEdit":
            return None
        self.edits.append(request["params"])
        return self.respond(request["params"])


@pytest.fixture
def editor() -> Editor:
    return Editor()


Start = Callable[..., Client]


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    answers = {"cart.py": RESULT, "new.py": "x = 1\n"}
    path = write_answers(tmp_path_factory.mktemp("answers"), answers)
    server = Listening("--target", "scripted", "--answers", str(path))
    yield server
    assert server.stop() == 128 + signal.SIGTERM
    assert "Traceback" not in server.errors.text


@pytest.fixture
def start(listening: Listening, editor: Editor) -> Start:
    def begin(**how: Any) -> Client:
        client = listening.connect(editor)
        client.initialize(**how)
        return client

    return begin


def changes(edit: Message) -> Message:
    (only,) = edit["edit"]["documentChanges"]
    assert isinstance(only, dict)
    return only


def test_one_versioned_edit_with_a_label(start: Start, editor: Editor) -> None:
    client = start()
    client.open(URI, TEXT, version=3)
    result = client.command(URI, 3, snippet=SNIPPET)["result"]
    assert result["status"] == "applied"
    assert (result["report"]["added"], result["report"]["verified"]) == (1, True)
    (asked,) = editor.edits
    assert asked["label"] == "Apply edit"
    assert changes(asked)["textDocument"] == {"uri": URI, "version": 3}
    assert edited(TEXT, changes(asked)["edits"]) == RESULT
    assert "changeAnnotations" not in asked["edit"]


def test_progress_of_its_own_for_clients_that_show_it(start: Start, editor: Editor) -> None:
    client = start()
    client.open(URI, TEXT)
    client.command(URI, snippet=SNIPPET)
    (created,) = client.of("window/workDoneProgress/create")
    values = client.progress(created["token"])
    assert values[0]["kind"] == "begin"
    assert (values[0]["title"], values[0]["cancellable"]) == ("Apply edit", True)
    assert values[-1] == {"kind": "end", "message": "applied"}


def test_an_edit_that_is_there_already_asks_for_nothing(start: Start, editor: Editor) -> None:
    client = start()
    client.open(URI, RESULT)
    assert client.command(URI, snippet=SNIPPET)["result"]["status"] == "unchanged"
    assert editor.edits == []


def test_annotated_where_the_client_can(start: Start, editor: Editor) -> None:
    supported = {"documentChanges": True, "changeAnnotationSupport": {"groupsOnLabel": True}}
    capabilities = {"workspace": {"applyEdit": True, "workspaceEdit": supported}}
    client = start(capabilities=capabilities)
    client.open(URI, TEXT)
    client.command(URI, snippet=SNIPPET)
    client.notify("workspace/didChangeConfiguration", {"settings": {"preview": "never"}})
    client.command(URI, snippet=SNIPPET)
    annotations = [asked["edit"]["changeAnnotations"] for asked in editor.edits]
    (name,) = annotations[0]
    assert annotations[0][name]["needsConfirmation"] is True
    assert annotations[0][name]["description"] == "+1 −1 · 83% copied"
    assert annotations[1][name]["needsConfirmation"] is False
    assert all(edit["annotationId"] == name for edit in changes(editor.edits[0])["edits"])


def test_plain_changes_for_clients_without_document_changes(start: Start, editor: Editor) -> None:
    client = start(capabilities={"workspace": {"applyEdit": True}})
    client.open(URI, TEXT)
    assert client.command(URI, snippet=SNIPPET)["result"]["status"] == "applied"
    (asked,) = editor.edits
    assert edited(TEXT, asked["edit"]["changes"][URI]) == RESULT


def test_a_new_file_is_created_by_the_editor(start: Start, editor: Editor, tmp_path: Path) -> None:
    client = start()
    uri = (tmp_path / "new.py").as_uri()
    assert client.command(uri, None, instruction="write it")["result"]["status"] == "applied"
    create, edit = editor.edits[0]["edit"]["documentChanges"]
    assert create == {"kind": "create", "uri": uri}
    assert edit["textDocument"]["version"] is None
    assert edited("", edit["edits"]) == "x = 1\n"
    assert not (tmp_path / "new.py").exists()


def test_a_client_that_cannot_create_files_is_told(start: Start, tmp_path: Path) -> None:
    client = start(capabilities={"workspace": {"workspaceEdit": {"documentChanges": True}}})
    error = client.command((tmp_path / "new.py").as_uri(), None, instruction="x")["error"]
    assert error["data"]["code"] == "InvalidRequest"
    assert "Create it" in error["message"]


def test_a_refused_edit_is_no_success(start: Start, editor: Editor) -> None:
    client = start()
    client.open(URI, TEXT)
    editor.respond = lambda params: {"applied": False, "failureReason": "no such version"}
    error = client.command(URI, snippet=SNIPPET)["error"]
    assert (error["code"], error["data"]["code"]) == (-32801, "DocumentChanged")
    assert "no such version" in error["message"]


def test_an_edit_that_was_dropped_but_called_applied_is_no_success(
    start: Start, editor: Editor
) -> None:
    client = start()
    client.open(URI, TEXT)

    def typing(params: Message) -> Message:
        client.change(URI, 2, "# typed\n", (0, 0, 0, 0))
        return {"applied": True}

    editor.respond = typing
    assert client.command(URI, snippet=SNIPPET)["error"]["data"]["code"] == "DocumentChanged"


def test_an_edit_that_the_editor_reports_first_is_a_success(start: Start, editor: Editor) -> None:
    client = start()
    client.open(URI, TEXT)

    def applied(params: Message) -> Message:
        client.change(URI, 2, RESULT)
        return {"applied": True}

    editor.respond = applied
    assert client.command(URI, snippet=SNIPPET)["result"]["status"] == "applied"


def test_while_the_editor_applies_it_is_too_late_to_cancel(start: Start, editor: Editor) -> None:
    client = start()
    client.open(URI, TEXT)
    asked, go = threading.Event(), threading.Event()

    def slowly(params: Message) -> Message:
        asked.set()
        assert go.wait(300)
        return {"applied": True}

    editor.respond = slowly
    argument = {"textDocument": {"uri": URI, "version": 1}, "snippet": SNIPPET}
    key = client.request(
        "workspace/executeCommand", {"command": "applyEdit.apply", "arguments": [argument]}
    )
    assert asked.wait(300)
    client.notify("$/cancelRequest", {"id": key})
    client.notify("applyEdit/cancel", {"textDocument": {"uri": URI}})
    go.set()
    assert client.response(key)["result"]["status"] == "applied"


@pytest.mark.parametrize("arguments", [None, [], [None], ["x"], [{}], [[1]]])
def test_arguments_that_make_no_sense(start: Start, arguments: object) -> None:
    client = start()
    params = {"command": "applyEdit.apply", "arguments": arguments}
    error = client.call("workspace/executeCommand", params)["error"]
    assert (error["code"], error["data"]["code"]) == (-32602, "InvalidRequest")


def test_other_commands(start: Start) -> None:
    client = start()
    client.open(URI, TEXT)
    client.apply(URI, snippet=SNIPPET)
    stats = client.call("workspace/executeCommand", {"command": "applyEdit.stats"})["result"]
    assert stats == client.call("applyEdit/stats")["result"]
    (row,) = [row for row in stats["classes"] if row["dialect"] == "patch"]
    assert row["size"] == "<=200 lines"
    assert row["states"]["applied"] >= 1
    cancelled = client.call("workspace/executeCommand", {"command": "applyEdit.cancel"})
    assert cancelled["result"] == {"cancelled": 0}
    error = client.call("workspace/executeCommand", {"command": "applyEdit.nope"})["error"]
    assert error["code"] == -32602


def actions(client: Client, first: int, end: int) -> list[Message]:
    place = {"start": {"line": first, "character": 0}, "end": {"line": end, "character": 0}}
    params = {"textDocument": {"uri": URI}, "range": place, "context": {"diagnostics": []}}
    return client.call("textDocument/codeAction", params)["result"] or []


WITH_LITERALS = {
    **CAPABILITIES,
    "textDocument": {
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["refactor"]}}}
    },
}


def test_a_pasted_snippet_is_applied_and_goes(start: Start, editor: Editor) -> None:
    client = start(capabilities=WITH_LITERALS, options={"verify": "never"})
    pasted = "\n# ... existing code ...\n" + SNIPPET
    client.open(URI, TEXT + pasted)
    (action,) = actions(client, 6, 11)
    assert (action["title"], action["kind"]) == ("Apply this edit", "refactor.rewrite")
    assert (
        client.call("workspace/executeCommand", action["command"])["result"]["status"] == "applied"
    )
    assert edited(TEXT + pasted, changes(editor.edits[0])["edits"]) == RESULT


def test_an_instruction_in_a_comment_is_carried_out_and_goes(start: Start, editor: Editor) -> None:
    client = start()
    written = TEXT.replace("def show", "# edit: say what it is\ndef show")
    client.open(URI, written)
    # Only the comment: the whole file is to be edited. This client takes commands, not actions.
    (command,) = actions(client, 4, 5)
    assert command["arguments"][0]["instruction"] == "say what it is"
    assert command["arguments"][0]["selection"] is None
    assert client.call("workspace/executeCommand", command)["result"]["status"] == "applied"
    assert edited(written, changes(editor.edits[0])["edits"]) == RESULT
    # With the lines below it: those are.
    (command,) = actions(client, 4, 7)
    assert command["arguments"][0]["selection"]["start"] == {"line": 5, "character": 0}


@pytest.mark.parametrize(("first", "end"), [(0, 2), (2, 4), (0, 6), (5, 99), (3, 3)])
def test_code_that_is_no_edit_offers_nothing(start: Start, first: int, end: int) -> None:
    client = start()
    client.open(URI, TEXT)
    assert actions(client, first, end) == []
