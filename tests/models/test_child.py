"""Commands that fill a folder: watched, bounded, and never left behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from apply_server.models.child import own_module, python_module, run_watched


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_last_line_is_the_reason_and_nothing_reaches_our_own_output(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import sys; print('on stdout'); sys.exit('ERROR: no such package')"
    outcome = run_watched(python(code), tmp_path, lambda count: None)
    assert not outcome.ok
    assert outcome.status == 1
    assert outcome.reason == "ERROR: no such package"
    assert capfd.readouterr() == ("", "")


def test_the_command_does_not_read_our_stdin(tmp_path: Path) -> None:
    outcome = run_watched(
        python("import sys; print(repr(sys.stdin.read()))"), tmp_path, lambda count: None
    )
    assert outcome.ok
    assert outcome.reason == "''"


def test_bytes_are_told_while_the_folder_grows(tmp_path: Path) -> None:
    seen: list[int] = []
    code = """
import sys, time, pathlib
folder = pathlib.Path(sys.argv[1])
(folder / 'a').write_bytes(bytes(10))
while not (folder / 'go').exists(): time.sleep(0.01)
"""

    def on_bytes(count: int) -> None:
        seen.append(count)
        if count == 10:
            (tmp_path / "go").touch()

    assert run_watched(python(code, str(tmp_path)), tmp_path, on_bytes, poll_s=0.01).ok
    assert 10 in seen


def test_a_command_that_stalls_is_stopped(tmp_path: Path) -> None:
    command = python("import time; time.sleep(600)")
    outcome = run_watched(command, tmp_path, lambda count: None, stall_s=0.05, poll_s=0.01)
    assert outcome.stalled
    assert not outcome.ok
    assert outcome.reason == "nothing arrived any more"
    assert outcome.status != 0  # it has ended, and not by itself


def test_an_interrupt_takes_the_command_along(tmp_path: Path) -> None:
    code = """
import os, sys, time, pathlib
pathlib.Path(sys.argv[1], 'pid').write_text(str(os.getpid()))
time.sleep(600)
"""

    def interrupt(count: int) -> None:
        if count:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_watched(python(code, str(tmp_path)), tmp_path, interrupt, poll_s=0.01)
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
        "safetensors_rust.SafetensorError: I/O error: No space left on device (os error 28)",
    ],
)
def test_a_full_disk_in_the_command_is_an_os_error_here(tmp_path: Path, line: str) -> None:
    outcome = run_watched(python("import sys; sys.exit(sys.argv[1])", line), tmp_path, print)
    with pytest.raises(OSError, match="No space left"):
        outcome.raise_if_disk_full()


def test_other_failures_are_no_full_disk(tmp_path: Path) -> None:
    outcome = run_watched(python("raise ValueError('other')"), tmp_path, lambda count: None)
    outcome.raise_if_disk_full()
    assert outcome.reason == "ValueError: other"


def test_a_module_in_the_current_folder_is_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "this.py").write_text("raise SystemExit('from the current folder')")
    (tmp_path / "runpy.py").write_text("raise SystemExit('from the current folder')")
    monkeypatch.chdir(tmp_path)
    for command in (python_module("this"), own_module("this")):
        outcome = run_watched(command, tmp_path, lambda count: None)
        assert outcome.ok
        assert "Namespaces are one honking great idea" in outcome.output


def test_our_own_modules_run_without_being_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    outcome = run_watched(own_module("apply_server.models.snapshot", "x"), tmp_path, print)
    assert outcome.reason.startswith("ValueError: not enough values to unpack")


def test_the_output_kept_is_bounded(tmp_path: Path) -> None:
    outcome = run_watched(python("print('x' * 10_000_000); print('end')"), tmp_path, print)
    assert outcome.reason == "end"
    assert len(outcome.output) < 20_000
