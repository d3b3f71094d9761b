"""What is measured once of a model on this machine, and kept in the cache.

Must not know what the numbers mean.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Calibration:
    """Of the model in the folder `model`; files lie in `cache`.

    `circumstances`: all that the numbers hang on besides, such as device and number type.
    """

    model: Path
    circumstances: tuple[str, ...]
    cache: Path

    def once(self, name: str, load: Callable[[Any], T], measure: Callable[[], Any]) -> T:
        """`load` of what `measure` found out (JSON) the first time.

        A cache that can't be read or written, or holds what `load` refuses by ValueError, KeyError
        or TypeError, only means measuring again.
        """
        file = self.cache / f"{self._key()}.{name}.json"
        try:
            return load(json.loads(file.read_text("utf-8"))[name])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        found = measure()
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({"model": str(self.model), name: found}), "utf-8")
        except OSError:
            pass
        return load(found)

    def _key(self) -> str:
        parts = "\n".join((str(self.model.resolve()), *self.circumstances))
        return hashlib.sha256(parts.encode()).hexdigest()[:16]
