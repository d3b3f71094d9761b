"""Cases for replay: an original, an edit, and the exact bytes the edit should give.

A case is a folder with a `case.toml` or a line of a `.jsonl` file. This module must not know how a
case is run or reported.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from apply_server.errors import InvalidRequest

CASE_FILE = "case.toml"
_KEY = re.compile(r"([A-Za-z_]+)\s*=")

# A line of JSON has text but no file; tools that look at a file's name get the usual one.
_SUFFIXES: Mapping[str, str] = {
    "csharp": "cs",
    "javascript": "js",
    "kotlin": "kt",
    "makefile": "mk",
    "markdown": "md",
    "python": "py",
    "ruby": "rb",
    "rust": "rs",
    "shell": "sh",
    "typescript": "ts",
    "yaml": "yml",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One edit with its known result.

    `file_name` has no folder; its suffix tells the language. At least one of `instruction` and
    `snippet` is given. `original` and `expected` are the file's bytes: UTF-8, line ends, byte
    order mark and the end of the file exactly as they are on disk.
    """

    id: str
    language: str
    file_name: str
    original: bytes
    instruction: str | None
    snippet: str | None
    expected: bytes
    tags: tuple[str, ...] = ()


def load_cases(paths: Sequence[Path], only: str | None = None) -> list[Case]:
    """The cases under `paths`, in the order of the paths, folders sorted by name.

    A path is a case's folder, a folder of such folders, or a `.jsonl` file. `only` keeps the cases
    whose id contains it; `*`, `?` and `[...]` in it are wildcards. Raises InvalidRequest for a case
    that can't be read, for an id that comes twice, and when no case is left.
    """
    cases = [case for path in paths for case in _cases_at(path)]
    _refuse_duplicates(cases)
    if only is not None:
        cases = [case for case in cases if fnmatchcase(case.id, f"*{only}*")]
    if not cases:
        where = ", ".join(map(str, paths))
        raise InvalidRequest(f"No case in {where}" + (f" matches {only!r}." if only else "."))
    return cases


def _refuse_duplicates(cases: Sequence[Case]) -> None:
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise InvalidRequest(f"The case id {case.id!r} comes twice; reports need unique ids.")
        seen.add(case.id)


def _cases_at(path: Path) -> Iterator[Case]:
    if path.is_dir():
        own = path / CASE_FILE
        files = [own] if own.exists() else sorted(path.glob(f"*/{CASE_FILE}"))
        return (_folder_case(file) for file in files)
    if path.suffix == ".jsonl":
        return _jsonl_cases(path)
    raise InvalidRequest(f"{path} is neither a folder of cases nor a .jsonl file.")


@dataclass(frozen=True, slots=True)
class _Record:
    """A case's fields as written, and the line of each for messages."""

    path: Path
    line: int
    values: Mapping[str, object]
    lines: Mapping[str, int]

    def error(self, field: str, problem: str) -> InvalidRequest:
        line = self.lines.get(field, self.line)
        return InvalidRequest(f"{self.path}:{line}: the field `{field}` {problem}.")

    def text(self, field: str) -> str:
        if field not in self.values:
            raise self.error(field, "is missing")
        value = self.values[field]
        if not isinstance(value, str):
            raise self.error(field, "must be text")
        return value

    def optional_text(self, field: str) -> str | None:
        """None when absent, null or blank: an edit of blanks asks for nothing."""
        if self.values.get(field) is None:
            return None
        text = self.text(field)
        return text if text.strip() else None

    def texts(self, field: str) -> tuple[str, ...]:
        values = self.values.get(field, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self.error(field, "must be a list of texts")
        return tuple(values)

    def encoded(self, field: str) -> bytes:
        try:
            return self.text(field).encode()
        except UnicodeEncodeError:
            raise self.error(field, "holds half of a surrogate pair") from None

    def file(self, field: str) -> bytes:
        """The bytes of the file that the field names, beside the record."""
        name = self.text(field)
        if Path(name).name != name:
            raise self.error(field, f"must be the name of a file beside it, not {name!r}")
        try:
            return (self.path.parent / name).read_bytes()
        except OSError as error:
            reason = error.strerror or "it can't be read"
            raise self.error(field, f"names {name!r}: {reason}") from error

    def edit(self, instruction: str | None, snippet: str | None) -> tuple[str | None, str | None]:
        if instruction is None and snippet is None:
            raise self.error("instruction", "is needed where there is no snippet")
        return instruction, snippet


def _folder_case(path: Path) -> Case:
    record = _read_toml(path)
    if record.text("id") != path.parent.name:
        raise record.error("id", f"must be the name of its folder, {path.parent.name!r}")
    instruction, snippet = record.edit(record.optional_text("instruction"), _snippet_file(record))
    return Case(
        id=record.text("id"),
        language=record.text("language"),
        file_name=record.text("original"),
        original=record.file("original"),
        instruction=instruction,
        snippet=snippet,
        expected=record.file("expected"),
        tags=record.texts("tags"),
    )


def _snippet_file(record: _Record) -> str | None:
    if "snippet" not in record.values:
        return None
    try:
        return record.file("snippet").decode()
    except UnicodeDecodeError as error:
        raise record.error("snippet", f"names a file that is not UTF-8 ({error.reason})") from error


def _read_toml(path: Path) -> _Record:
    text = _read_text(path)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRequest(f"{path} is not valid TOML: {error}.") from error
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        key = _KEY.match(line)
        if key is not None:
            lines.setdefault(key[1], number)
    return _Record(path, 1, values, lines)


def _jsonl_cases(path: Path) -> Iterator[Case]:
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
        if line.strip():
            yield _line_case(_read_json(path, number, line))


def _read_json(path: Path, number: int, line: str) -> _Record:
    try:
        values = json.loads(line)
    except ValueError as error:
        raise InvalidRequest(f"{path}:{number}: this is not valid JSON: {error}.") from error
    if not isinstance(values, dict):
        raise InvalidRequest(f"{path}:{number}: a case must be a JSON object.")
    return _Record(path, number, values, {})


def _line_case(record: _Record) -> Case:
    language = record.text("language")
    instruction, snippet = record.edit(
        record.optional_text("instruction"), record.optional_text("snippet")
    )
    return Case(
        id=record.text("id"),
        language=language,
        file_name=f"original.{_SUFFIXES.get(language, language)}",
        original=record.encoded("original"),
        instruction=instruction,
        snippet=snippet,
        expected=record.encoded("expected"),
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(f"{path}:{line}: this is not UTF-8.") from error
    except OSError as error:
        raise InvalidRequest(f"{path} can't be read: {error.strerror}.") from error
