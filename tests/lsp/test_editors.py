"""Real editors, nothing of ours in them: their own clients, exact buffers, one undo."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.raw import environment, serve_command, write_answers

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
