"""What users of an editor are told: in their words, never in the command line's."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from apply_server import arguments
from apply_server.arguments import build_parser
from apply_server.errors import ApplyError, GuardBlocked, Remedy
from apply_server.lsp import settings
from apply_server.lsp.protocol import ApplyOptions
from apply_server.lsp.settings import Settings
from tests.lsp.raw import ROOT, Client, Listening, write_answers

SOURCES = {path: ast.parse(path.read_text("utf-8")) for path in ROOT.glob("apply_server/**/*.py")}
# `--name` in a sentence; what git writes into a diff is no option of ours.
OPTION = re.compile(r"(?<![\w-])(?<!diff )--[a-z]+")


def module_path(module: str) -> Path | None:
    base = ROOT / module.replace(".", "/")
    return next(
        (path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()), None
    )


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def reachable(module: str) -> set[Path]:
    """The files of everything that a module imports, wherever it does."""
    found: set[Path] = set()
    waiting = [module_path(module)]
    while waiting:
        path = waiting.pop()
        if path in SOURCES and path not in found:
            found.add(path)
            waiting += map(module_path, imported(SOURCES[path]))
    return found


def sentences(tree: ast.Module) -> Iterator[str]:
    """Texts of more than one word, docstrings apart."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and " " in text and id(node) not in documentation:
            yield text


SERVER = sorted(reachable("apply_server.lsp.serve"))


def test_the_scan_reaches_all_that_can_refuse() -> None:
    names = {path.relative_to(ROOT / "apply_server").as_posix() for path in SERVER}
    assert {
        "document.py", "files.py", "request.py", "prompt.py", "config.py", "engine/merging.py",
        "engine/build.py", "engine/local.py", "guards/__init__.py", "merge/blocks.py",
        "snippet/lazy.py", "models/store.py", "target/support.py", "propose/build.py",
    } <= names  # fmt: skip
    assert names.isdisjoint({"cli.py", "arguments.py", "bench/build.py"})
    own = list(sentences(SOURCES[ROOT / "apply_server/bench/build.py"]))
    assert any(OPTION.search(text) for text in own), "it would see an option"


@pytest.mark.parametrize("path", SERVER, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_sentence_names_an_option_of_the_command_line(path: Path) -> None:
    assert [text for text in sentences(SOURCES[path]) if OPTION.search(text)] == []


def remedies() -> Iterator[Remedy]:
    """All that the program knows, their values where they are written down."""
    for tree in SOURCES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Remedy":
                setting, values, effect = node.args
                known = values.elts if isinstance(values, ast.Tuple) else []
                texts = tuple(getattr(value, "value", "x") for value in known)
                yield Remedy(ast.literal_eval(setting), texts or ("x",), ast.literal_eval(effect))


REMEDIES = sorted(remedies(), key=str)


@pytest.mark.parametrize("remedy", REMEDIES, ids=lambda remedy: f"{remedy.setting}")
def test_each_remedy_is_a_setting_of_both_worlds(remedy: Remedy) -> None:
    known = {field.name for field in (*fields(Settings), *fields(ApplyOptions))}
    assert remedy.setting in known
    assert len(remedy.values) == 1 or remedy.setting == "allowed_guards"
    option = arguments.spelled(remedy).strip("`").split()[0]
    assert option in options_of("apply")
    assert remedy.effect.endswith(".")


def options_of(command: str) -> set[str]:
    parser = build_parser({name: lambda options: 0 for name in COMMANDS})
    (group,) = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return set(group.choices[command]._option_string_actions)


COMMANDS = (
    "apply", "replay", "bench", "serve", "heads list", "heads train", "models list", "models pull",
    "models path",
)  # fmt: skip


def test_a_remedy_in_the_words_of_each() -> None:
    error = GuardBlocked(
        "It is half.", {"n": 1}, Remedy("allowed_guards", ("syntax", "truncated"), "takes it.")
    )
    typed, sent = error.spelled(arguments.spelled), error.spelled(settings.spelled)
    assert typed.message == "It is half. `--allow syntax --allow truncated` takes it."
    assert sent.message == (
        'It is half. "Apply Anyway" (`options.allowedGuards: ["syntax", "truncated"]`) takes it.'
    )
    assert (type(sent), sent.details) == (GuardBlocked, {"n": 1})
    other = ApplyError("No.", remedy=Remedy("draft_model", ("NAME",), "says which."))
    assert other.spelled(arguments.spelled).message == "No. `--draft-model NAME` says which."
    assert other.spelled(settings.spelled).message == (
        'No. `"applyEdit.draftModel": "NAME"` says which.'
    )
    assert ApplyError("No.").spelled(settings.spelled).message == "No."


TEXT = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
WORSE = TEXT.replace("g():", "g(:")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    answers = write_answers(tmp_path_factory.mktemp("answers"), {"worse.py": WORSE})
    server = Listening("--target", "scripted", "--answers", str(answers))
    client = server.connect()
    client.initialize()
    yield client
    client.shut_down()
    server.stop()
    assert "Traceback" not in server.errors.text


NEVER = {"verify": "never"}


@pytest.mark.parametrize(
    ("params", "settings", "end"),
    [
        (
            {"instruction": "x", "options": NEVER},
            {},
            'a snippet may do without. `"applyEdit.verify": "always"` asks the model.',
        ),
        (
            {"snippet": "    return 3\n", "options": NEVER},
            {},
            ' `"applyEdit.verify": "whenAmbiguous"` lets the model decide.',
        ),
        (
            {"instruction": "x"},
            {},
            ' "Apply Anyway" (`options.allowedGuards: ["syntax"]`) takes the result as it is.',
        ),
        (
            {"instruction": "x"},
            {"proposer": "auto+model"},
            '\'auto+model\' needs a draft model. `"applyEdit.draftModel": "NAME"` says which.',
        ),
    ],
)
def test_over_the_wire(
    client: Client, params: dict[str, object], settings: dict[str, object], end: str
) -> None:
    client.open("file:///w/worse.py", TEXT)
    configured = {"settings": {"proposer": "auto", **settings}}
    client.notify("workspace/didChangeConfiguration", configured)
    error = client.apply("file:///w/worse.py", **params)["error"]
    assert error["message"].endswith(end), error["message"]
    assert error["data"]["message"] == error["message"]
    assert not OPTION.search(error["message"])


def test_a_file_that_cannot_be_decoded(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_bytes("é = 1\n".encode("cp1252"))
    error = client.apply(file.as_uri(), None, snippet="x")["error"]
    assert error["message"] == (
        "The file isn't valid utf-8 (byte 0). "
        '`"applyEdit.encoding": "cp1252"` (or gb18030, shift_jis, …) says how to read it.'
    )
