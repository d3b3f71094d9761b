"""Source texts → edits to learn from: files with holes, and the files whole as the answers.

Most of such an answer is novel text, where heads are used; real edits are mostly copies, and a
model would read ten times as much for as many places to learn from. Must not know models.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from apply_server.errors import InvalidRequest
from apply_server.languages import language_of
from apply_server.replay.cases import CASE_FILE, Case, load_cases

WINDOW = 48
"""Lines of a file in one lesson: prompts stay short, and a file teaches several times."""
LEAST_LINES = 8
LONGEST_LINE = 160
"""Files with longer lines are data, or weren't written by hand."""
LARGEST_FILE = 200_000
NOT_SOURCES = {".git", "__pycache__", "node_modules", "site-packages", "test", "tests"}
KEPT, MISSING = (1, 4), (1, 12)
"""So many lines at a time are kept, and are missing."""
INSTRUCTION = "Write the code that is missing."


def lessons(paths: Sequence[Path]) -> list[Case]:
    """Edits from the files under `paths`, in an order that is random and the same every time.

    A path is a folder of source files, a source file, or cases as for replay, whose results are
    read as source files. None at all stands for Python's own library. Raises InvalidRequest where
    nothing is found.
    """
    found = [lesson for path in paths or [library()] for lesson in _lessons_of(path)]
    if not found:
        raise InvalidRequest(f"No source text in {', '.join(map(str, paths))}.")
    Random(0).shuffle(found)
    return found


def library() -> Path:
    """Python's own library, which is wherever this program is."""
    return Path(sysconfig.get_path("stdlib"))


def _lessons_of(path: Path) -> Iterator[Case]:
    if _holds_cases(path):
        for case in load_cases([path]):
            yield from _windows(case.id, case.language, case.file_name, _text(case.expected))
        return
    for file in _files(path):
        language = language_of(file.name)
        if language and file.stat().st_size <= LARGEST_FILE:
            yield from _windows(str(file), language, file.name, _text(file.read_bytes()))


def _holds_cases(path: Path) -> bool:
    return path.suffix == ".jsonl" or any(path.glob(CASE_FILE)) or any(path.glob(f"*/{CASE_FILE}"))


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(set(folders) - NOT_SOURCES)
        yield from (Path(folder, name) for name in sorted(names))


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace").replace("\r\n", "\n")


def _windows(name: str, language: str, file_name: str, text: str) -> Iterator[Case]:
    lines = text.splitlines(keepends=True)
    if max(map(len, lines), default=0) > LONGEST_LINE:
        return
    for first in range(0, len(lines), WINDOW):
        window = lines[first : first + WINDOW]
        if len(window) >= LEAST_LINES:
            identity = f"{name}:{first}"
            original = "".join(with_holes(window, Random(identity))).encode()
            whole = "".join(window).encode()
            yield Case(identity, language, file_name, original, INSTRUCTION, None, whole)


def with_holes(lines: Sequence[str], random: Random) -> list[str]:
    """The lines that are left where runs of others are missing."""
    kept: list[str] = []
    at = 0
    while at < len(lines):
        end = at + random.randint(*KEPT)
        kept += lines[at:end]
        at = end + random.randint(*MISSING)
    return kept
