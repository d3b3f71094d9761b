"""The folder that models are kept in: its layout, its locks, and room on its disk.

    <root>/<name>/model.gguf     the verified download, kept so that a newer converter needs no
                                 second one
    <root>/<name>/dense-v<n>/    what converter version n made of it; there only when complete
    <root>/<name>/partial/<key>/ what was fetched so far from one source
    <root>/<name>/lock

This module must not know where files come from or what is in them.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from apply_server.errors import ModelUnavailable
from apply_server.folders import CACHE_VARIABLE, cache_folder
from apply_server.models.child import folder_bytes
from apply_server.models.progress import Report, gigabytes

# Raise it when the converter's output changes: older folders are then made again.
DENSE_VERSION = 1
# errno of a full disk, or of a user's full share of it.
DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def free_bytes(folder: Path) -> int:
    """Bytes that may still be written on the disk where `folder` is, or will be."""
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(existing).free


@dataclass(frozen=True, slots=True)
class Room:
    """Room for the model `name` on the disk of `folder`, which `variable` moves elsewhere."""

    folder: Path
    name: str
    variable: str
    free: Callable[[Path], int] = free_bytes

    @contextmanager
    def for_bytes(self, needed: int) -> Iterator[None]:
        """Check that `needed` bytes more fit, and do the block's writing there.

        Raises:
            ModelUnavailable: they don't, or the disk filled up within the block all the same;
                says how much is needed and where.
        """
        if self.free(self.folder) < needed:
            raise self._too_small(needed)
        try:
            yield
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            raise self._too_small(needed) from error

    def _too_small(self, needed: int) -> ModelUnavailable:
        free = self.free(self.folder)
        return ModelUnavailable(
            f"The model {self.name} needs {gigabytes(needed)} more in {self.folder}, and only "
            f"{gigabytes(free)} are free there. Free some room, or set {self.variable} to a folder "
            "on another disk. What was fetched so far is kept.",
            {"needed_bytes": needed, "free_bytes": free, "folder": str(self.folder)},
        )


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """One model's folder in the cache."""

    path: Path
    free: Callable[[Path], int] = free_bytes

    @property
    def gguf(self) -> Path:
        """The verified download; there only when complete."""
        return self.path / "model.gguf"

    @property
    def dense(self) -> Path:
        """The converted model, loadable as it is; there only when complete."""
        return self.path / f"dense-v{DENSE_VERSION}"

    @property
    def partial(self) -> Path:
        """What is fetched so far, by source."""
        return self.path / "partial"

    def partial_bytes(self) -> int:
        """Bytes that earlier, interrupted fetches left."""
        return folder_bytes(self.partial)

    @contextmanager
    def locked(self, report: Report) -> Iterator[None]:
        """Hold the model's lock; a second process waits here, and says so.

        Raises:
            ModelUnavailable: the cache can't be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = self._acquire(report)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            yield
        finally:
            lock.release()

    def _acquire(self, report: Report) -> FileLock:
        lock = FileLock(self.path / "lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            report.notice(f"Another process is preparing {self.path.name}; waiting for it.")
            lock.acquire()
        return lock

    @property
    def room(self) -> Room:
        """The disk the folder is on."""
        return Room(self.path, self.path.name, CACHE_VARIABLE, self.free)

    @contextmanager
    def new_dense(self) -> Iterator[Path]:
        """A folder to convert into, which becomes `dense` when the block ends without an error."""
        self._remove(f"{self.dense.name}.*")
        work = self.path / f"{self.dense.name}.{os.getpid()}"
        work.mkdir()
        try:
            yield work
            os.replace(work, self.dense)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        self._remove("dense-v*", keep=self.dense)

    def _remove(self, pattern: str, keep: Path | None = None) -> None:
        for folder in self.path.glob(pattern):
            if folder != keep:
                # Another process may have an older conversion mapped; on Windows it stays then.
                shutil.rmtree(folder, ignore_errors=True)

    def _unwritable(self, error: OSError) -> ModelUnavailable:
        return ModelUnavailable(
            f"The model cache {self.path} can't be used: {error.strerror or error}. "
            f"Set {CACHE_VARIABLE} to a folder that can be written.",
            {"folder": str(self.path)},
        )


@dataclass(frozen=True, slots=True)
class ModelCache:
    """All models' folders."""

    root: Path
    free: Callable[[Path], int] = free_bytes

    def folder(self, name: str) -> ModelFolder:
        """The folder of the model `name`, which may not exist yet."""
        return ModelFolder(self.root / name, self.free)


def cache_root(environment: Mapping[str, str]) -> Path:
    """The folder of all models."""
    return cache_folder(environment) / "models"
