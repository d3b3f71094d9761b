"""Every fixture in an editor: what was streamed, what was answered, and what `apply` writes agree.

A scripted target answers, so this needs no weights. Where STREAMED_MODEL names a model it decides
instead, loaded once for both ways, and a line tells of each fixture. STREAMED_UNGUARDED=1 overrides
all guards. Choose fixtures with -k:

    STREAMED_MODEL=smollm2-135m-instruct pytest --timeout 0 tests/lsp/test_fixtures_streamed.py \\
        -k "python-cache-ttl or css"
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from apply_server import cli
from apply_server.document import Document
from apply_server.engine import build
from apply_server.engine.provider import ScriptedAnswers
from apply_server.guards import GUARD_NAMES
from apply_server.lsp.serve import Sources
from apply_server.lsp.server import ApplyLanguageServer
from apply_server.lsp.service import Backend
from apply_server.lsp.settings import Settings
from apply_server.lsp.transport import converse
from apply_server.lsp.wire import StreamOutbox, framed, messages
from apply_server.models import DEFAULT_MODEL, Report
from apply_server.replay.cases import Case, load_cases
from tests.lsp.raw import ROOT, Client, Message, edited, lsp_lines

MODEL = os.environ.get("STREAMED_MODEL", "")
GUARDS = GUARD_NAMES if os.environ.get("STREAMED_UNGUARDED") else ()
CASES = load_cases([ROOT / "fixtures"])
PATIENCE_S = 6 * 3600.0  # of a large model on a small machine


@dataclass(frozen=True)
class End:
    """How an edit ended: the whole text, or the code and details of a refusal."""

    text: str = ""
    code: str = ""
    details: str = ""

    @classmethod
    def of(cls, refusal: Message) -> End:
        details = json.dumps(refusal["details"], sort_keys=True)
        return cls(code=refusal["code"], details=details)


# The way through an editor


def in_this_process(backend: Backend) -> Client:
    """A client of a server on another thread, so that both ways can share a loaded model."""
    ours, theirs = socket.socketpair()

    async def serve() -> None:
        reader, writer = await asyncio.open_connection(sock=theirs)
        server = ApplyLanguageServer(backend, Settings(MODEL or DEFAULT_MODEL))
        server.protocol.connect(StreamOutbox(writer), framed)
        await converse(server, messages(reader))
        writer.close()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    return Client(ours.makefile("rb"), ours.makefile("wb"), connection=ours)


def composed(text: str, values: Sequence[Message]) -> str:
    """What a client shows in the end that follows the partial results."""
    last = len(lsp_lines(text)) - 1
    shown: list[Message] = []
    for value in values:
        if value["kind"] == "preview":
            shown = value["edits"]
        elif value["kind"] == "delta":
            first, end = value["fromLine"], value["toLine"]
            before = [edit for edit in shown if edit["range"]["start"]["line"] < first]
            after = [edit for edit in shown if end <= edit["range"]["start"]["line"] < last]
            shown = [*before, *value["edits"], *after]
    return edited(text, shown)


def streamed(client: Client, case: Case) -> tuple[End, str | None]:
    """The response, and what had been shown before it came."""
    text = Document.from_bytes(case.original).text
    uri = f"file:///w/{case.id}/{case.file_name}"
    client.open(uri, text, language=case.language)
    key = client.start(
        uri,
        instruction=case.instruction,
        snippet=case.snippet,
        options={"allowedGuards": GUARDS},
        partialResultToken=case.id,
    )
    response = client.response(key, PATIENCE_S)
    if "error" in response:
        return End.of(response["error"]["data"]), None
    shown = composed(text, client.progress(case.id))
    return End(edited(text, response["result"]["edits"])), shown


# The way through the command line


def applied(case: Case, folder: Path, output: Callable[[], str]) -> End:
    """`apply-server apply --write`."""
    file, snippet = folder / case.file_name, folder / "snippet"
    file.write_bytes(case.original)
    words = ["apply", str(file), "--write", "--json", "--language", case.language]
    words += ["--model", MODEL or DEFAULT_MODEL]
    words += [word for guard in GUARDS for word in ("--allow", guard)]
    if case.instruction is not None:
        words += ["--instruction", case.instruction]
    if case.snippet is not None:
        snippet.write_bytes(case.snippet.encode())
        words += ["--snippet", str(snippet)]
    cli.main(words)
    told = json.loads(output())
    if told["status"] == "failed":
        return End.of(told["error"])
    return End(Document.from_bytes(file.read_bytes()).text)


# Both


def answers(kind: str) -> ScriptedAnswers:
    """The expected file, or for "unchanged" the file as it is: a model that disagrees."""
    found: dict[str, str] = {}
    for case in CASES:
        text = Document.from_bytes(case.original).text
        wanted = text if kind == "unchanged" else Document.from_bytes(case.expected).text
        found[hashlib.sha256(text.encode()).hexdigest()] = wanted
    return ScriptedAnswers(found)


@pytest.fixture(scope="module", params=["model"] if MODEL else ["expected", "unchanged"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    script = answers(request.param)
    with pytest.MonkeyPatch.context() as patch:
        if MODEL:
            load, loaded = build.load_model, dict[str, Any]()

            def once(config: Any, report: Report) -> Any:
                if MODEL not in loaded:
                    loaded[MODEL] = load(config, report)
                return loaded[MODEL]

            patch.setattr(build, "load_model", once)
        else:
            patch.setattr(build, "load_model", lambda config, report: None)
            patch.setattr(
                build, "model_engine", lambda model, config: script.engine(config, Report())
            )
        backend = Backend(Sources(script))
        client = in_this_process(backend)
        client.initialize(options={"target": "" if MODEL else "scripted"})
        yield client
        client.shut_down()
        assert backend.workers.close(60)


def test_all_fixtures_are_here() -> None:
    assert len(CASES) == len(list(ROOT.glob("fixtures/*/case.toml")))
    assert len(CASES) >= 54


def _sign(one: object, other: object) -> str:
    return "=" if one in (None, other) else "≠"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_stream_the_answer_and_the_command_line_agree(
    client: Client, case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.perf_counter()
    answer, shown = streamed(client, case)
    halfway = time.perf_counter()
    written = applied(case, tmp_path, lambda: capsys.readouterr().out)
    if MODEL:
        exact = answer.text == Document.from_bytes(case.expected).text
        with capsys.disabled():
            sys.stdout.write(
                f"\n{case.id}: {answer.code or ('exact' if exact else 'other')}, "
                f"stream {_sign(shown, answer.text)} answer "
                f"{_sign(answer, written)} apply, {halfway - started:.0f} s and "
                f"{time.perf_counter() - halfway:.0f} s\n"
            )
    assert answer == written
    assert shown in (None, answer.text)
    if not MODEL:
        assert (answer.code, shown) == ("", answer.text)
