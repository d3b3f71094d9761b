"""Start a conversion of a GGUF file as a process of its own.

It takes several times the file's size in memory, which only the end of a process gives back for
certain. This module must not know how a conversion works; it imports no torch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from apply_server.errors import ModelUnavailable
from apply_server.models.child import own_module, run_watched
from apply_server.models.sources import OnBytes

# In the converted folder: {"notes": [sentences for the user]}.
NOTES_FILE = "conversion.json"


def convert_in_child(gguf: Path, folder: Path, on_bytes: OnBytes) -> Sequence[str]:
    """Convert `gguf` into `folder` in a process of its own; returns notes for the user.

    `on_bytes` hears the bytes in `folder`, most of which appear at the end.

    Raises:
        ModelUnavailable: the file can't be converted (its architecture, damage, memory).
        OSError: the disk is full.
    """
    outcome = run_watched(
        own_module("apply_server.models.convert", str(gguf), str(folder)), folder, on_bytes
    )
    outcome.raise_if_disk_full()
    if outcome.status < 0 and not outcome.output.strip():
        raise ModelUnavailable(
            f"Converting {gguf} was stopped by signal {-outcome.status}, most likely for lack of "
            "memory: it takes about five times the file's size."
        )
    if not outcome.ok:
        raise ModelUnavailable(f"{gguf} could not be converted: {outcome.reason}")
    notes: list[str] = json.loads((folder / NOTES_FILE).read_text("utf-8"))["notes"]
    return notes
