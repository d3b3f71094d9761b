"""Run one command that fills a folder, watch the folder grow, and leave no process behind.

Downloads and conversions run as processes of their own so that a stalled one can be given up, an
interrupt ends it at once, and its memory goes back to the system. This module must not know what
the commands are.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from apply_server.models.sources import OnBytes

_DISK_FULL = ("No space left on device", "Disk quota exceeded", "os error 28", "not enough space")
_TAIL_BYTES = 16_384
_GRACE_S = 5.0
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]
_RUN_OWN = """
import runpy, sys
parent, module = sys.argv[1:3]
if parent not in sys.path:
    sys.path.insert(0, parent)
sys.argv[1:3] = []
runpy.run_module(module, run_name="__main__")
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended. `stalled` means that it was stopped because nothing grew any more."""

    status: int
    output: str
    stalled: bool = False

    @property
    def ok(self) -> bool:
        """Whether it did what it was asked."""
        return self.status == 0 and not self.stalled

    @property
    def reason(self) -> str:
        """The last line it said, which in Python's and pip's manner is the error."""
        if self.stalled:
            return "nothing arrived any more"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return lines[-1] if lines else f"exit status {self.status}"

    def raise_if_disk_full(self) -> None:
        """Raise the OSError that the command met in our place."""
        if any(sign in self.output for sign in _DISK_FULL):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def python_module(module: str, *arguments: str) -> list[str]:
    """A command that runs `module` in this Python. `-P`: the current folder may hold anything."""
    return [sys.executable, "-P", "-m", module, *arguments]


def own_module(module: str, *arguments: str) -> list[str]:
    """A command that runs a module of this package, also from a checkout that isn't installed."""
    return [sys.executable, "-P", "-c", _RUN_OWN, str(_PACKAGE_PARENT), module, *arguments]


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below `folder` right now; files may vanish meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except OSError:
                continue
    return total


def run_watched(
    command: Sequence[str],
    folder: Path,
    on_bytes: OnBytes,
    *,
    environment: Mapping[str, str] | None = None,
    stall_s: float | None = None,
    poll_s: float = 0.2,
) -> Outcome:
    """Run `command` to its end; tell `on_bytes` what `folder` holds after every `poll_s` seconds.

    The command reads nothing and prints nowhere: stdin and stdout belong to our own caller. It is
    stopped after `stall_s` seconds without growth, and on any exception, KeyboardInterrupt too.
    """
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
        try:
            stalled = _watch(process, folder, on_bytes, stall_s, poll_s)
        finally:
            _stop(process)
        return Outcome(process.returncode, _tail(output), stalled)


def _watch(
    process: subprocess.Popen[bytes],
    folder: Path,
    on_bytes: OnBytes,
    stall_s: float | None,
    poll_s: float,
) -> bool:
    seen, grown_at = -1, time.monotonic()
    while True:
        try:
            process.wait(poll_s)
            return False
        except subprocess.TimeoutExpired:
            pass
        count = folder_bytes(folder)
        if count != seen:
            seen, grown_at = count, time.monotonic()
            on_bytes(count)
        elif stall_s is not None and time.monotonic() - grown_at > stall_s:
            return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _TAIL_BYTES))
    return output.read().decode("utf-8", "replace")
