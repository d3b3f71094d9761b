"""The VS Code extension agrees with the server: messages, settings, commands, errors, version."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from apply_server import __version__
from apply_server.lsp import protocol
from apply_server.lsp.settings import PREVIEWS, TRACES, Settings, wire_name

CLIENT = Path(__file__).parents[1] / "vscode-client"
MANIFEST = json.loads((CLIENT / "package.json").read_text("utf-8"))
PROPERTIES = MANIFEST["contributes"]["configuration"]["properties"]
SOURCE = (CLIENT / "src" / "protocol.ts").read_text("utf-8")

# What only the server knows: for other editors and for tests.
SERVER_ONLY = {
    "warmUp", "device", "dtype", "profile", "proposer", "draftModel", "temperature", "topP", "topK",
    "seed", "repetitionPenalty", "target", "prefixCache", "threads",
}  # fmt: skip


def _interface(name: str) -> dict[str, bool]:
    """The fields of an exported interface, and whether each is required."""
    body = re.search(rf"export interface {name} {{\n(.*?)\n}}", SOURCE, re.DOTALL)
    assert body, f"protocol.ts has no interface {name}"
    return {field: not optional for field, optional in re.findall(r"readonly (\w+)(\??):", body[1])}


@pytest.mark.parametrize(
    "name",
    [
        "Position", "Range", "TextEdit", "TextDocument", "ApplyOptions", "ApplyParams", "Report",
        "ApplyResult", "Preview", "Verified", "Delta",
    ],
)  # fmt: skip
def test_messages_have_the_same_fields(name: str) -> None:
    message = getattr(protocol, name)
    assert is_dataclass(message)
    assert list(_interface(name)) == [protocol.camel_case(part.name) for part in fields(message)]


@pytest.mark.parametrize("name", ["Report", "ApplyResult", "Preview", "Verified", "Delta"])
def test_what_the_server_sends_is_never_missing(name: str) -> None:
    assert all(_interface(name).values())


@pytest.mark.parametrize("kind", [protocol.Preview, protocol.Verified, protocol.Delta])
def test_kinds_of_partial_results(kind: type) -> None:
    tag = next(part.default for part in fields(kind) if part.name == "kind")
    assert f"readonly kind: '{tag}';" in SOURCE


def test_methods_and_numbers() -> None:
    for name in ("APPLY", "CANCEL", "PREPARE", "STATS"):
        assert f"{name.lower()}: '{getattr(protocol, name)}'" in SOURCE
    for name in ("INVALID_PARAMS", "REQUEST_CANCELLED", "CONTENT_MODIFIED", "REQUEST_FAILED"):
        assert f"export const {name} = {getattr(protocol, name)};" in SOURCE
    assert f"export const SECTION = '{protocol.SECTION}';" in SOURCE


def test_settings_are_the_servers_with_its_defaults() -> None:
    defaults = {
        wire_name(part.name): part.default
        for part in fields(Settings)
        if wire_name(part.name) not in SERVER_ONLY
    }
    shown = {name.removeprefix("applyEdit."): it["default"] for name, it in PROPERTIES.items()}
    assert shown == defaults


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("verify", tuple(map(str, protocol.Verify))),
        ("preview", PREVIEWS),
        ("trace.server", TRACES),
    ],
)
def test_choices_are_the_servers(name: str, values: tuple[str, ...]) -> None:
    assert tuple(PROPERTIES[f"applyEdit.{name}"]["enum"]) == values


def test_versions_are_of_one_series() -> None:
    assert MANIFEST["version"].split(".")[:2] == __version__.split(".")[:2]


def test_each_command_is_declared_and_registered() -> None:
    declared = {entry["command"] for entry in MANIFEST["contributes"]["commands"]}
    handlers = (CLIENT / "src" / "extension.ts").read_text("utf-8").split("handlers:")[1]
    registered = set(re.findall(r"^    (\w+): ", handlers.split("return")[0], re.MULTILINE))
    assert declared == {f"applyEdit.{name}" for name in registered}


def test_every_key_is_tied_to_the_previewed_file() -> None:
    for binding in MANIFEST["contributes"]["keybindings"]:
        assert re.match(r"applyEdit\.(reviewing|running) && ", binding["when"]), binding
