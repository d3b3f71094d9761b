"""Whole model repositories of the Hugging Face hub, in the cache that its other users share.

The download is a process of its own, so that an interrupt ends all its threads at once. This
module must not know which models are wanted or how they are loaded.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from pathlib import Path

import huggingface_hub  # its parts load when they are first used
from huggingface_hub import constants

from apply_server.models.child import own_module, run_watched
from apply_server.models.hub import within
from apply_server.models.sources import OnBytes, SourceUnavailable

# Weights only as safetensors: the older formats are pickles, which can run code when loaded.
MODEL_PATTERNS = ("*.json", "*.jinja", "*.safetensors", "*.model", "*.txt")


@dataclass(frozen=True, slots=True)
class HubRepositories:
    """Repositories of the hub at `endpoint` (the client's default if empty).

    `answer_s` bounds a question to its API, `silence_s` the longest pause of a download.
    """

    endpoint: str = ""
    answer_s: float = 8.0
    silence_s: float = 60.0

    @property
    def folder(self) -> Path:
        """The hub client's cache (`$HF_HOME` moves it)."""
        return Path(constants.HF_HUB_CACHE)

    def cached(self, repo: str) -> Path | None:
        """The newest complete copy of `repo`, found without the network."""
        try:
            found = huggingface_hub.snapshot_download(
                repo, allow_patterns=list(MODEL_PATTERNS), local_files_only=True
            )
        except (FileNotFoundError, ValueError):  # absent or incomplete; no name the hub could have
            return None
        return Path(found)

    def size(self, repo: str) -> int:
        """Bytes of the files that `fetch` brings."""
        api = huggingface_hub.HfApi(endpoint=self.endpoint or None)
        info = within(
            self.answer_s,
            lambda: api.model_info(repo, files_metadata=True, timeout=self.answer_s),
        )
        files = [file for file in info.siblings or () if _wanted(file.rfilename)]
        if not any(file.rfilename.endswith(".safetensors") for file in files):
            raise SourceUnavailable("it holds no safetensors weights")
        return sum(file.size or 0 for file in files)

    def fetch(self, repo: str, on_bytes: OnBytes) -> Path:
        """Fetch what is missing of `repo`; files that are complete stay."""
        outcome = run_watched(
            own_module("apply_server.models.snapshot", repo, self.endpoint),
            self.folder / f"models--{repo.replace('/', '--')}",
            on_bytes,
            stall_s=self.silence_s,
        )
        outcome.raise_if_disk_full()
        found = self.cached(repo) if outcome.ok else None
        if found is None:
            raise SourceUnavailable(outcome.reason)
        return found


def _wanted(filename: str) -> bool:
    return any(fnmatch.fnmatch(filename, pattern) for pattern in MODEL_PATTERNS)
