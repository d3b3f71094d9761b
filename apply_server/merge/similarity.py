"""How alike two lines are, by their text and by what they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rapidfuzz import fuzz, process

from apply_server.merge.lines import Lines
from apply_server.snippet.symbols import Symbol

CUTOFF = 0.6
_ROUGH = 37
_CASELESS = 0.9
_SAME_SYMBOL = 0.8
_SAME_KIND = 0.65
_OTHER_DEFINITION = 0.5
_OTHER_KEY = 0.8
_MOST = 12


def similar(
    norm: str,
    symbol: Symbol | None,
    choices: Mapping[int, str],
    original: Lines,
) -> list[tuple[int, float]]:
    """(line, similarity 0..1) of the lines that may be an older form of `norm`, best first.

    `choices`: line of `original` → its normal form in lower case.
    """
    found = process.extract(
        norm.lower(), choices, scorer=fuzz.ratio, score_cutoff=_ROUGH, limit=4 * _MOST
    )
    unique = symbol is not None and len(original.symbol_places.get(symbol, ())) == 1
    scored = []
    for _, caseless, line in found:
        ratio = max(fuzz.ratio(norm, original.norm[line]), _CASELESS * caseless) / 100
        scored.append((line, _with_symbols(ratio, symbol, original.symbols[line], unique)))
    return sorted((entry for entry in scored if entry[1] >= CUTOFF), key=lambda e: -e[1])[:_MOST]


def _with_symbols(ratio: float, one: Symbol | None, other: Symbol | None, unique: bool) -> float:
    if one is None or other is None:
        return ratio
    if one == other:
        return max(ratio, _SAME_SYMBOL if unique else _SAME_KIND)
    if "definition" in (one.kind, other.kind):
        return ratio * _OTHER_DEFINITION
    return ratio * _OTHER_KEY


def closest(norm: str, lines: Sequence[str], limit: int = 3) -> list[int]:
    """The lines most like `norm`, ascending; for telling a person where to look."""
    found = process.extract(norm, lines, scorer=fuzz.ratio, score_cutoff=30, limit=limit)
    return sorted(at for _, _, at in found)
