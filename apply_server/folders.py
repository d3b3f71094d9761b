"""Where this program keeps what it can make again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_cache_path

CACHE_VARIABLE = "APPLY_SERVER_CACHE"


def cache_folder(environment: Mapping[str, str]) -> Path:
    """`$APPLY_SERVER_CACHE`, else the platform's cache folder for this program."""
    chosen = environment.get(CACHE_VARIABLE)
    return Path(chosen).expanduser() if chosen else user_cache_path("apply-server", False)
