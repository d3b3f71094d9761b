"""Which block of the original a snippet's lines belong to, from headers that are sure.

Indentation decides, not a parser. Must not choose matches; it restricts and discourages them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from apply_server.merge.lines import Lines, is_closer

_INTRODUCES = re.compile(r"#(?!#)|//|/\*|\*|--|;|@|\[")


@dataclass(frozen=True, slots=True)
class Scope:
    """Per snippet row: the header row above it (-1 none) and what is known of its place.

    `inside[row]`: the original's lines (start, end) of the innermost resolved block, or None.
    `closes[row]`: the original line that closes the block this row closes, or -1.
    `floor[row]`: the row stands after a marker that hides the rest of a block; the original's
    lines before `floor` are in that block.
    `hides`: rows in whose own block a marker stands.
    `opener[row]`: for a closing row the row that opened its block, else -1.
    `fresh[row]`: the row is in a block whose header names something the original lacks.
    """

    header: tuple[int, ...]
    resolved: tuple[int, ...]
    inside: tuple[tuple[int, int] | None, ...]
    closes: tuple[int, ...]
    opener: tuple[int, ...]
    floor: tuple[int, ...]
    hides: frozenset[int]
    fresh: tuple[bool, ...]


def scopes(
    snippet: Lines, original: Lines, segments: Sequence[tuple[int, int]], markers: Sequence[int]
) -> Scope:
    """`segments`: (first, end) rows; `markers`: the level of the marker below each, -1 none."""
    headers = _headers(snippet)
    openers = _openers(snippet)
    resolved: list[int] = []
    inside: list[tuple[int, int] | None] = []
    fresh: list[bool] = []
    blocks: dict[int, tuple[int, int]] = {}
    for row, header in enumerate(headers):
        area = inside[header] if header >= 0 else None
        if header >= 0 and resolved[header] >= 0:
            at = resolved[header]
            area = blocks.setdefault(header, (at + 1, original.block_end(at)))
        inside.append(area)
        owner = openers[row] if openers[row] >= 0 else header
        owned = snippet.level[row] >= 0 and owner >= 0
        new = owned and (fresh[owner] or (_is_fresh(snippet, original, owner, resolved)))
        fresh.append(new)
        at = -1 if new else _resolve(snippet, original, row, area)
        resolved.append(_renamed(snippet, original, row) if at < 0 else at)
    closes = [_closing(original, resolved, opener) for opener in openers]
    return Scope(
        tuple(headers),
        tuple(resolved),
        tuple(inside),
        tuple(closes),
        tuple(openers),
        tuple(_floors(snippet, original, resolved, segments, markers)),
        frozenset(_marked(snippet, segments, markers)),
        tuple(fresh),
    )


def _floors(
    snippet: Lines,
    original: Lines,
    resolved: Sequence[int],
    segments: Sequence[tuple[int, int]],
    markers: Sequence[int],
) -> list[int]:
    floors = [0] * len(snippet)
    headers = _marked(snippet, segments, markers)
    for header, (start, stop) in zip(headers, segments[1:], strict=False):
        if header < 0 or resolved[header] < 0:
            continue
        below = original.block_end(resolved[header])
        row = start
        while row < stop and not 0 <= snippet.level[row] <= snippet.level[header]:
            row += 1
        for at in range(row, stop):
            floors[at] = below - 1 if at == row and is_closer(snippet.text[row]) else below
    return floors


def _marked(
    snippet: Lines, segments: Sequence[tuple[int, int]], markers: Sequence[int]
) -> list[int]:
    """For each segment the row in whose block the marker below it stands, -1 if none."""
    found = []
    for (first, end), marker in zip(segments, markers, strict=True):
        header = end - 1
        while header >= first and not 0 <= snippet.level[header] < marker:
            header -= 1
        if header > first and _opens_alone(snippet, header):
            header -= 1
        found.append(header if header >= first else -1)
    return found


def _headers(snippet: Lines) -> list[int]:
    """The row that each row stands below; a bracket alone on its line belongs to the row above."""
    depths = snippet.level
    stack: list[int] = []
    headers = []
    for row, depth in enumerate(depths):
        if depth < 0:
            headers.append(stack[-1] if stack else -1)
            continue
        while stack and depths[stack[-1]] > depth:
            stack.pop()
        if stack and depths[stack[-1]] == depth and not _opens_alone(snippet, row):
            stack.pop()
        headers.append(stack[-1] if stack else -1)
        if not _opens_alone(snippet, row) or headers[-1] < 0:
            stack.append(row)
    return headers


def _opens_alone(snippet: Lines, row: int) -> bool:
    return snippet.text[row] in {"{", "("} and row > 0 and snippet.depth[row - 1] >= 0


def _openers(snippet: Lines) -> list[int]:
    """For a closing row the row that opened its block, else -1."""
    latest: dict[int, int] = {}
    openers = []
    for row, depth in enumerate(snippet.level):
        if depth < 0:
            openers.append(-1)
            continue
        openers.append(latest.get(depth, -1) if is_closer(snippet.text[row]) else -1)
        latest = {held: at for held, at in latest.items() if held <= depth}
        if not (_opens_alone(snippet, row) and depth in latest):
            latest[depth] = row
    return openers


def _resolve(snippet: Lines, original: Lines, row: int, area: tuple[int, int] | None) -> int:
    """The one line of the original that `row` can only be, or -1."""
    if snippet.level[row] < 0 or snippet.common(row):
        return -1
    exact = _within(original.places.get(snippet.norm[row], ()), area)
    if exact:
        return exact[0] if len(exact) == 1 else -1
    symbol = snippet.symbols[row]
    if symbol is None or symbol.kind != "definition":
        return -1
    named = _within(original.symbol_places.get(symbol, ()), area)
    return named[0] if len(named) == 1 else -1


def _renamed(snippet: Lines, original: Lines, row: int) -> int:
    """A definition right below its old comment or decorator is the one the file has there."""
    if row == 0 or not _INTRODUCES.match(snippet.text[row - 1]):
        return -1
    places = original.places.get(snippet.norm[row - 1], ())
    at = places[0] + 1 if len(places) == 1 else len(original)
    if at >= len(original) or original.norm[at] in snippet.places:
        return -1
    ours, theirs = snippet.symbols[row], original.symbols[at]
    if ours is None or theirs is None or ours in original.symbol_places:
        return -1
    named = theirs in snippet.symbol_places
    return at if ours.kind == theirs.kind == "definition" and not named else -1


def _within(places: Sequence[int], area: tuple[int, int] | None) -> Sequence[int]:
    if area is None or len(places) < 2:
        return places
    return [at for at in places if area[0] <= at < area[1]] or places


def _is_fresh(snippet: Lines, original: Lines, row: int, resolved: Sequence[int]) -> bool:
    symbol = snippet.symbols[row]
    return (
        resolved[row] < 0
        and symbol is not None
        and symbol.kind == "definition"
        and symbol not in original.symbol_places
        and snippet.norm[row] not in original.places
    )


def _closing(original: Lines, resolved: Sequence[int], opener: int) -> int:
    if opener < 0 or resolved[opener] < 0:
        return -1
    end = original.block_end(resolved[opener])
    return end - 1 if is_closer(original.text[end - 1]) else -1
