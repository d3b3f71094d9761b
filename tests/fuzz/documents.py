"""Files to edit: arbitrary bytes in any encoding, and code of many languages with its oddities."""

from __future__ import annotations

import codecs
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from apply_server.document import Document

FIXTURES = Path(__file__).parents[2] / "fixtures"
CODECS = (
    "utf-8",
    "utf-16-le",
    "utf-16-be",
    "utf-32-le",
    "utf-32-be",
    "latin-1",
    "cp1252",
    "shift_jis",
    "gb18030",
    "big5",
    "euc_kr",
    "iso2022_jp",
    "cp037",
    "mac_roman",
)
BOMS = (
    b"",
    codecs.BOM_UTF8,
    codecs.BOM_UTF16_LE,
    codecs.BOM_UTF16_BE,
    codecs.BOM_UTF32_LE,
    codecs.BOM_UTF32_BE,
)
ENDINGS = ("\n", "\r\n", "\r")
ODD = (
    "é",
    "😀",
    "中文",
    "\u2028",
    "\x0c",
    "\x85",
    "\ufeff",
    "\u00a0",
    "e\u0301",
    "“q”",
    "\t",
    "\x1c",
)
_MOST_LINES = 60


@dataclass(frozen=True, slots=True)
class Code:
    """Lines without endings, and the language id that a fixture gives them."""

    lines: tuple[str, ...]
    language: str


@cache
def originals() -> tuple[Code, ...]:
    """The fixtures' original files."""
    found = []
    for folder in sorted(path.parent for path in FIXTURES.glob("*/case.toml")):
        case = tomllib.loads((folder / "case.toml").read_text("utf-8"))
        data = (folder / str(case["original"])).read_bytes()
        document = Document.from_bytes(data)
        found.append(Code(document.line_texts(), str(case["language"])))
    return tuple(found)


@st.composite
def code(draw: st.DrawFn, damaged: bool = True) -> Code:
    """A stretch of a fixture; `damaged`: with repeated, lost, reindented and odd lines."""
    source = draw(st.sampled_from(originals()))
    size = draw(st.integers(0, min(len(source.lines), _MOST_LINES)))
    start = draw(st.integers(0, len(source.lines) - size))
    lines = list(source.lines[start : start + size])
    if damaged:
        for change in draw(st.lists(st.sampled_from(_CHANGES), max_size=4)):
            lines = change(draw, lines)
    return Code(tuple(lines), source.language)


Change = Callable[[st.DrawFn, list[str]], list[str]]


def span(draw: st.DrawFn, lines: Sequence[str], most: int = 12) -> tuple[int, int]:
    """Some stretch of `lines`, as (start, end)."""
    start = draw(st.integers(0, len(lines)))
    return start, draw(st.integers(start, min(len(lines), start + most)))


def _repeat(draw: st.DrawFn, lines: list[str]) -> list[str]:
    start, end = span(draw, lines)
    at = draw(st.integers(0, len(lines)))
    return [*lines[:at], *lines[start:end], *lines[at:]]


def _lose(draw: st.DrawFn, lines: list[str]) -> list[str]:
    start, end = span(draw, lines)
    return lines[:start] + lines[end:]


def _reindent(draw: st.DrawFn, lines: list[str]) -> list[str]:
    start, end = span(draw, lines)
    by = draw(st.sampled_from(["", " ", "  ", "   ", "\t", " \t", "\u00a0"]))
    moved = [by + line.lstrip(" ") if by in ("", "\t") else by + line for line in lines[start:end]]
    return lines[:start] + moved + lines[end:]


def _add_odd(draw: st.DrawFn, lines: list[str]) -> list[str]:
    if not lines:
        return [draw(st.sampled_from(ODD))]
    at = draw(st.integers(0, len(lines) - 1))
    column = draw(st.integers(0, len(lines[at])))
    odd = draw(st.sampled_from(ODD))
    return [*lines[:at], lines[at][:column] + odd + lines[at][column:], *lines[at + 1 :]]


def _add_blanks(draw: st.DrawFn, lines: list[str]) -> list[str]:
    at = draw(st.integers(0, len(lines)))
    blanks = draw(st.lists(st.sampled_from(["", "", "  ", "\t"]), min_size=1, max_size=3))
    return lines[:at] + blanks + lines[at:]


_CHANGES: tuple[Change, ...] = (_repeat, _lose, _reindent, _add_odd, _add_blanks)


@st.composite
def texts(draw: st.DrawFn, lines: Sequence[str]) -> str:
    """`lines` with endings, the same or mixed, and with or without a final one."""
    endings = draw(st.lists(st.sampled_from(ENDINGS), min_size=1, max_size=3))
    pieces = [line + endings[at % len(endings)] for at, line in enumerate(lines)]
    if pieces and draw(st.booleans()):
        pieces[-1] = lines[-1]
    return "".join(pieces)


def encoded(draw: st.DrawFn, text: str) -> tuple[bytes, str | None]:
    """A file that holds `text` as far as its encoding can, and the encoding if one must say it."""
    codec = draw(st.sampled_from(CODECS)) if draw(st.booleans()) else "utf-8"
    bom = "\ufeff" if codec.startswith("utf") and draw(st.booleans()) else ""
    data = (bom + text).encode(codec, "ignore")
    return data, None if codec == "utf-8" or (bom and codec.startswith("utf")) else codec


arbitrary_bytes = st.one_of(
    st.binary(max_size=120),
    st.builds(bytes.__add__, st.sampled_from(BOMS), st.binary(max_size=80)),
    st.lists(
        st.sampled_from(
            [b"# coding: latin-1\n", b"x = 1", b"\r", b"\n", b"\xe9", b"\x1b$B0l\x1b(B"]
        ),
        max_size=12,
    ).map(b"".join),
)
