"""How alike two lines are, by their text and by what they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rapidfuzz import fuzz, process

from apply_server.snippet.symbols import Symbol

CUTOFF = 0.6
_SAME_SYMBOL = 0.8
_OTHER_SYMBOL = 0.5
_MOST = 12


def similar(
    norm: str,
    symbol: Symbol | None,
    choices: Mapping[int, str],
    symbols: Sequence[Symbol | None],
    unique: bool,
) -> list[tuple[int, float]]:
    """`unique`: the file has one line with `symbol`. (key, similarity 0..1) of the choices that may be an older form of `norm`."""
    found = process.extract(
        norm, choices, scorer=fuzz.ratio, score_cutoff=CUTOFF * 62, limit=4 * _MOST
    )
    scored = [
        (key, _with_symbols(max(score, _caseless(norm, text)) / 100, symbol, symbols[key], unique))
        for text, score, key in found
    ]
    scored = [entry for entry in scored if entry[1] >= CUTOFF]
    return sorted(scored, key=lambda entry: -entry[1])[:_MOST]


def _caseless(one: str, other: str) -> float:
    return 0.9 * fuzz.ratio(one.lower(), other.lower())


def _with_symbols(ratio: float, one: Symbol | None, other: Symbol | None, unique: bool) -> float:
    if one is None or other is None:
        return ratio
    if one == other:
        return max(ratio, _SAME_SYMBOL) if unique else ratio
    return ratio * _OTHER_SYMBOL if "definition" in (one.kind, other.kind) else ratio


def closest(norm: str, lines: Sequence[str], limit: int = 3) -> list[int]:
    """The lines most like `norm`, ascending; for telling a person where to look."""
    found = process.extract(norm, lines, scorer=fuzz.ratio, score_cutoff=30, limit=limit)
    return sorted(at for _, _, at in found)
