"""From what a user calls a model to a folder it loads from, fetching and converting as needed.

This module must not know how models are loaded or prompted; it imports no torch.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from apply_server.errors import ModelUnavailable
from apply_server.models.cache import ModelCache, ModelFolder, Room
from apply_server.models.fetch import SPARE_BYTES, Fetcher
from apply_server.models.gguf_header import read_header
from apply_server.models.progress import Progress, Report, gigabytes
from apply_server.models.registry import CHAT_PROFILE, REGISTRY, ModelEntry
from apply_server.models.sources import Converter, Repositories, SourceUnavailable

_REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*")
State = Literal["ready", "downloaded", "partial", "absent"]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model ready to load.

    `folder` holds `config.json`, safetensors and, for every model converted here,
    `tokenizer.json`, which is to be read as it is: transformers' own tokenizer classes may put
    other rules in place of the file's. `profile` names the prompt profile, `entry` the registry's
    entry if the model has one.
    """

    folder: Path
    profile: str = CHAT_PROFILE
    entry: ModelEntry | None = None


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One row of `models list`: "downloaded" means that only the conversion is missing."""

    entry: ModelEntry
    state: State
    folder: Path | None


@dataclass(frozen=True, slots=True)
class ModelStore:
    """Finds models by registry name, local folder, `.gguf` file or hub id, in this order."""

    cache: ModelCache
    fetcher: Fetcher
    repositories: Repositories
    convert: Converter
    registry: Sequence[ModelEntry] = REGISTRY

    def resolve(self, name: str, report: Report) -> ModelFiles:
        """The files of the model that the user calls `name`; fetched and converted if needed.

        Raises:
            ModelUnavailable: nothing has this name, or it can't be fetched, verified, converted
                or stored; says what to do.
        """
        found = self.find(name)
        if found is not None:
            return found
        entry = self.entry(name)
        if entry is not None:
            return self._from_registry(entry, report)
        path = Path(name).expanduser()
        if path.is_file():
            return self._from_gguf(path, report)
        return self._from_repository(name, report)

    def find(self, name: str) -> ModelFiles | None:
        """Like `resolve`, but fetches and converts nothing: None if that would be needed.

        Raises:
            ModelUnavailable: nothing has this name, or what has it is no model.
        """
        entry = self.entry(name)
        path = Path(name).expanduser()
        if entry is not None:
            return _if_made(ModelFiles(self.cache.folder(entry.name).dense, entry.profile, entry))
        if name and path.is_dir():  # the empty name's path is the current folder
            return ModelFiles(_checked(path))
        if path.is_file():
            return _if_made(ModelFiles(self._gguf_folder(path).dense))
        if _REPOSITORY.fullmatch(name) and path.suffix != ".gguf":
            cached = self.repositories.cached(name)
            return ModelFiles(_checked(cached)) if cached else None
        raise self._unknown(name)

    def path(self, name: str) -> Path:
        """The folder of a model that is there already.

        Raises:
            ModelUnavailable: it isn't, or nothing has this name.
        """
        files = self.find(name)
        if files is None:
            raise ModelUnavailable(
                f"The model {name} is not here yet; `apply-server models pull {name}` fetches it."
            )
        return files.folder

    def tokenizer_path(self, name: str) -> Path | None:
        """The model's `tokenizer.json` if the model is there already; fetches nothing."""
        files = self.find(name)
        tokenizer = files.folder / "tokenizer.json" if files else None
        return tokenizer if tokenizer is not None and tokenizer.is_file() else None

    def statuses(self) -> tuple[ModelStatus, ...]:
        """The registry's models and what of them is there."""
        return tuple(self._status(entry) for entry in self.registry)

    def entry(self, name: str) -> ModelEntry | None:
        """The registry's entry of that name."""
        return next((entry for entry in self.registry if entry.name == name.lower()), None)

    def _status(self, entry: ModelEntry) -> ModelStatus:
        folder = self.cache.folder(entry.name)
        if folder.dense.is_dir():
            return ModelStatus(entry, "ready", folder.dense)
        if folder.gguf.is_file():
            return ModelStatus(entry, "downloaded", None)
        return ModelStatus(entry, "partial" if folder.partial.is_dir() else "absent", None)

    def _from_registry(self, entry: ModelEntry, report: Report) -> ModelFiles:
        folder = self.cache.folder(entry.name)
        with folder.locked(report):
            if not folder.gguf.is_file() and not folder.dense.is_dir():
                needed = entry.size_bytes - folder.partial_bytes() + entry.dense_bytes
                with folder.room.for_bytes(max(0, needed) + SPARE_BYTES):
                    self.fetcher.fetch(entry, folder, report)
            self._convert(folder.gguf, folder, report)
        return ModelFiles(folder.dense, entry.profile, entry)

    def _from_gguf(self, path: Path, report: Report) -> ModelFiles:
        folder = self._gguf_folder(path)
        with folder.locked(report):
            self._convert(path.resolve(), folder, report)
        return ModelFiles(folder.dense)

    def _gguf_folder(self, path: Path) -> ModelFolder:
        """Keyed by the file's place, size and time, as hashing gigabytes each time would cost."""
        if path.suffix != ".gguf":
            raise ModelUnavailable(
                f"{path} is not a model: name a folder with config.json, or a .gguf file."
            )
        info = path.stat()
        identity = f"{path.resolve()}\0{info.st_size}\0{info.st_mtime_ns}"
        key = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        stem = re.sub(r"[^\w.-]", "_", path.stem)
        return self.cache.folder(f"{stem}-{key}")

    def _convert(self, gguf: Path, folder: ModelFolder, report: Report) -> None:
        if folder.dense.is_dir():  # another process did it while we waited for the lock
            return
        total = read_header(gguf).dense_bytes
        report.progress(Progress("convert", 0, total))
        with folder.room.for_bytes(total), folder.new_dense() as work:
            notes = self.convert(
                gguf, work, lambda done: report.progress(Progress("convert", done, total))
            )
        report.progress(Progress("convert", total, total))
        for note in notes:
            report.notice(note)

    def _from_repository(self, repo: str, report: Report) -> ModelFiles:
        try:
            total = self.repositories.size(repo)
            report.notice(f"Fetching {repo} ({gigabytes(total)}) from the Hugging Face hub.")
            with Room(self.repositories.folder, repo, "HF_HOME", self.cache.free).for_bytes(total):
                fetched = self.repositories.fetch(
                    repo, lambda done: report.progress(Progress("fetch", done, total))
                )
        except SourceUnavailable as error:
            raise self._no_repository(repo, error) from error
        return ModelFiles(_checked(fetched))

    def _no_repository(self, repo: str, error: SourceUnavailable) -> ModelUnavailable:
        return ModelUnavailable(
            f"{repo} can't be had from the Hugging Face hub: {error}. Check the id, the network "
            "and, for a gated model, `hf auth login`; or name a local folder, a .gguf file or one "
            f"of {self._names()}."
        )

    def _unknown(self, name: str) -> ModelUnavailable:
        names = [entry.name for entry in self.registry]
        wanted = name.lower()
        begun = [known for known in names if wanted and known.startswith(wanted)]
        close = begun or difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)
        hint = f" Did you mean {close[0]}?" if close else ""
        return ModelUnavailable(
            f"There is no model {name!r}.{hint} Known: {self._names()}; or name a folder with a "
            "transformers model, a .gguf file, or a hub id (owner/name).",
            {"known": names},
        )

    def _names(self) -> str:
        return ", ".join(entry.name for entry in self.registry)


def _if_made(files: ModelFiles) -> ModelFiles | None:
    return files if files.folder.is_dir() else None


def _checked(folder: Path) -> Path:
    """`folder` if a model can be loaded from it; else ModelUnavailable says what is missing."""
    if not (folder / "config.json").is_file():
        gguf = next(iter(sorted(folder.glob("*.gguf"))), None)
        hint = f" Name the file itself: {gguf}" if gguf else " A transformers model has one."
        raise ModelUnavailable(f"The folder {folder} holds no config.json.{hint}")
    if not any(folder.glob("*.safetensors")):
        raise ModelUnavailable(f"The folder {folder} holds no safetensors weights.")
    return folder
