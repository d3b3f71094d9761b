"""Snippets that are code: with markers, a whole file, or one symbol of a file.

Must not decide where a segment goes; it only decides what the snippet claims to cover.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from apply_server.errors import InvalidRequest
from apply_server.languages import is_markdown
from apply_server.snippet.markers import marker_rows
from apply_server.snippet.model import Edit, Segment
from apply_server.snippet.symbols import Symbol, symbol_of


def parse_code(lines: Sequence[str], original: Sequence[str], language: str | None) -> Edit:
    """The lazy, patch or full edit that `lines` are."""
    markers = marker_rows(lines, original)
    if markers:
        return _lazy(lines, markers)
    patch = _is_patch(lines, original, is_markdown(language))
    return Edit(
        "patch" if patch else "full", (Segment(tuple(lines)),), leading=patch, trailing=patch
    )


def _lazy(lines: Sequence[str], markers: set[int]) -> Edit:
    segments: list[Segment] = []
    current: list[str] = []
    for row, line in enumerate(lines):
        if row not in markers:
            current.append(line)
            continue
        if any(text.strip() for text in current):
            segments.append(Segment(tuple(current), marker=line))
        current = []
    trailing = not any(text.strip() for text in current)
    if not trailing:
        segments.append(Segment(tuple(current)))
    if not segments:
        raise InvalidRequest("The snippet holds nothing but markers for existing code.")
    filled = (row for row, line in enumerate(lines) if line.strip())
    return Edit("lazy", tuple(segments), leading=next(filled) in markers, trailing=trailing)


def _is_patch(lines: Sequence[str], original: Sequence[str], headings: bool) -> bool:
    """A marker-less snippet is a patch when it names one symbol of a file that has more."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return False
    named = Counter(
        symbol for line in original if (symbol := symbol_of(line.strip(), headings)) is not None
    )
    outer = _outer_symbols(filled, headings)
    if len(outer) == 1:
        return named[outer[0]] == 1
    known = [symbol for symbol in outer if named[symbol] == 1]
    starts_file = _first_filled(original).strip() == filled[0].strip()
    ends_file = _first_filled(reversed(original)).strip() == filled[-1].strip()
    return (
        bool(known)
        and len(known) == len(outer)
        and not starts_file
        and not ends_file
        and (2 * len(filled) < sum(1 for line in original if line.strip()))
    )


def _outer_symbols(filled: Sequence[str], headings: bool) -> list[Symbol]:
    edge = min(len(line) - len(line.lstrip()) for line in filled)
    return [
        symbol
        for line in filled
        if len(line) - len(line.lstrip()) == edge
        and (symbol := symbol_of(line.strip(), headings)) is not None
    ]


def _first_filled(lines: Iterable[str]) -> str:
    return next((line for line in lines if line.strip()), "")
