"""Real editors, nothing of ours in them: their own clients, exact buffers, one undo."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.raw import ROOT, Message, Spawned, edited, environment, serve_command, write_answers

SCRIPTS = Path(__file__).parent / "editors"
TEXT = (
    "# Ä form\x0cfeed, a line\u2028separator and 😋\n"
    "def total(rows):\n    return sum(rows)  # é😋x\n\n\n"
    "def show(rows):\n    print('é😋', total(rows))\n"
)
SNIPPET = "def total(rows):\n    return round(sum(rows), 2)  # é😋x\n"
RESULT = TEXT.replace("return sum(rows)", "return round(sum(rows), 2)")
LAST = "    print('é😋', total(rows))"


def run_editor(command: list[str], file: Path) -> dict[str, Any]:
    """Run a script in an editor; what it has seen."""
    file.write_bytes(TEXT.encode())
    answers = write_answers(file.parent, {file.name: RESULT})
    out = file.parent / "seen.json"
    server = serve_command("--stdio", "--target", "scripted", "--answers", str(answers))
    settings = {
        "SERVER": json.dumps(server),
        "SNIPPET": SNIPPET,
        "FILE": str(file),
        "OUT": str(out),
        "HOME": str(file.parent),  # the user's own configuration stays out of it
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        command,
        env=environment(**settings),
        cwd=file.parent,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert out.exists(), (done.stdout + done.stderr).decode("utf-8", "replace")
    seen: dict[str, Any] = json.loads(out.read_text("utf-8"))
    assert seen.get("error") is None, seen
    return seen


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim (nvim) is not installed")
def test_neovim_applies_one_edit_and_undoes_it_in_one_step(tmp_path: Path) -> None:
    file = tmp_path / "a b#é.py"
    script = SCRIPTS / "neovim.lua"
    command = ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-n", "-S", str(script), str(file)]
    seen = run_editor(command, file)
    assert seen["before"] + "\n" == TEXT
    assert seen["result"]["status"] == "applied"
    assert seen["after"] + "\n" == RESULT
    assert seen["cursor"] == LAST
    assert seen["modified"] is True
    assert seen["undone"] + "\n" == TEXT
    assert seen["stale"] == "DocumentChanged"
    assert seen["again"] + "\n" == RESULT
    assert file.read_bytes().decode() == TEXT, "applying never saves"


def emacs_has_eglot() -> bool:
    if shutil.which("emacs") is None:
        return False
    check = ["emacs", "--batch", "--eval", "(progn (package-initialize) (require 'eglot))"]
    return subprocess.run(check, capture_output=True, check=False, timeout=60).returncode == 0


@pytest.mark.skipif(not emacs_has_eglot(), reason="Emacs with eglot is not installed")
def test_emacs_applies_one_edit_and_undoes_it_in_one_step(tmp_path: Path) -> None:
    file = tmp_path / "a b#é.txt"
    seen = run_editor(["emacs", "--batch", "-l", str(SCRIPTS / "emacs.el")], file)
    assert seen["before"] == TEXT
    assert seen["status"] == "applied"
    assert seen["after"] == RESULT
    assert seen["cursor"] == LAST
    assert seen["modified"] is True
    assert seen["undone"] == TEXT
    assert seen["stale"] == "DocumentChanged"
    assert seen["again"] == RESULT
    assert file.read_bytes().decode() == TEXT, "applying never saves"


def test_the_readmes_helix_configuration_starts_the_server_and_offers_its_action(
    tmp_path: Path,
) -> None:
    """Helix is in no registry that CI reaches, so its part is played here, as it plays it."""
    readme = (ROOT / "README.md").read_text("utf-8")
    found = re.search(r"\*\*Helix\*\*.*?```toml\n(.*?)```", readme, re.DOTALL)
    assert found
    configured = tomllib.loads(found[1])
    (name,) = configured["language-server"]
    assert all(name in language["language-servers"] for language in configured["language"])
    server = configured["language-server"][name]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts[server["command"]] == "apply_server.cli:main"
    assert server["timeout"] > 60, "Helix waits 20 s for an answer unless told otherwise"
    command, *options = server["args"]
    assert command == "serve"

    asked: list[Message] = []

    def answer(request: Message) -> Any:
        if request["method"] != "workspace/applyEdit":
            return None
        asked.append(request["params"])
        return {"applied": True}

    capabilities = {
        "general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]},
        "textDocument": {
            "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}
        },
        "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
        "window": {"workDoneProgress": True},
    }
    uri = "file:///w/cart.py"
    written = "# edit: round it\n" + TEXT
    answers = write_answers(tmp_path, {"cart.py": RESULT})
    scripted = ("--target", "scripted", "--answers", str(answers))
    with Spawned(*options, *scripted, answer=answer) as client:
        client.initialize(capabilities)
        client.open(uri, written, version=0)
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
        params = {
            "textDocument": {"uri": uri},
            "range": place,
            "context": {"diagnostics": [], "triggerKind": 1},
        }
        (action,) = client.call("textDocument/codeAction", params)["result"]
        done = client.call("workspace/executeCommand", action["command"])["result"]
        assert (action["title"], done["status"]) == ("Apply this edit", "applied")
        (change,) = asked[0]["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": uri, "version": 0}
        assert edited(written, change["edits"], "utf-8") == RESULT
        assert client.exit() == 0
