"""Which weights are these? A fingerprint that costs no reading of gigabytes.

Must not know what is in the files.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

_SAMPLES = 64
_SAMPLE_BYTES = 4096


def fingerprint(folder: Path) -> str:
    """Of a model's folder: its configuration, and sizes and evenly spread samples of its weights.

    Any training changes weights everywhere, so samples tell models apart.
    """
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for path in sorted(folder.glob("*.safetensors")):
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            for sample in range(_SAMPLES):
                file.seek(sample * max(size - _SAMPLE_BYTES, 0) // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()
