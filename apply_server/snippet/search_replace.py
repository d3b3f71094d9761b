"""SEARCH/REPLACE blocks: conflict markers around what is there and what is to be there.

What stands outside the blocks (file names, fences, prose) is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from apply_server.errors import InvalidRequest
from apply_server.snippet.model import Block, Edit

_OPEN = re.compile(r"^\s*(?P<signs><{5,9})\s?(?P<label>[\w ./:\-]*)$")
_CLOSE = re.compile(r"^\s*(?P<signs>>{5,9})(\s?[\w ./:\-]*)$")
_DIVIDER = re.compile(r"^\s*(?P<signs>={5,9})$")
# Fewer or more signs without the other markers can be text: a heading's rule, a quotation.
_USUAL = 7


def is_search_replace(lines: Sequence[str], original: Sequence[str]) -> bool:
    """A marker that the file itself doesn't have as a line: part of a block is no code either."""
    held = frozenset(original)
    signs = [found for line in lines if line not in held and (found := _sign(line))]
    return _complete(lines, held) or any(len(found.group("signs")) == _USUAL for found in signs)


def parse_search_replace(lines: Sequence[str], original: Sequence[str]) -> Edit:
    """Raises InvalidRequest for a block that lacks one of its three markers."""
    held = frozenset(original)
    blocks = []
    at = 0
    while at < len(lines):
        if _marks(_CLOSE, lines[at], held):
            raise InvalidRequest("A SEARCH/REPLACE block isn't opened with <<<<<<< SEARCH.")
        if not _marks(_OPEN, lines[at], held):
            at += 1
            continue
        below = range(at + 1, len(lines))
        end = next((row for row in below if _marks(_CLOSE, lines[row], held)), None)
        if end is None or any(_marks(_OPEN, line, held) for line in lines[at + 1 : end]):
            raise InvalidRequest("A SEARCH/REPLACE block isn't closed with >>>>>>> REPLACE.")
        blocks.append(_block(lines[at : end + 1], original))
        at = end + 1
    return Edit("search_replace", blocks=tuple(blocks))


def _sign(line: str) -> re.Match[str] | None:
    return _OPEN.match(line) or _CLOSE.match(line)


def _marks(pattern: re.Pattern[str], line: str, held: Collection[str]) -> bool:
    return line not in held and pattern.match(line) is not None


def _complete(lines: Sequence[str], held: Collection[str]) -> bool:
    """All three markers, whatever the number of their signs."""
    ends = all(any(_marks(sign, line, held) for line in lines) for sign in (_OPEN, _CLOSE))
    return ends and any(map(_DIVIDER.match, lines))


def _block(lines: Sequence[str], original: Sequence[str]) -> Block:
    """Split at the divider; the file tells which one it is where the text has such lines."""
    body = lines[1:-1]
    dividers = [(row, found) for row, line in enumerate(body) if (found := _DIVIDER.match(line))]
    if not dividers:
        raise InvalidRequest("A SEARCH/REPLACE block has no ======= between its two parts.")
    opening = _OPEN.match(lines[0])
    alike = [
        row
        for row, found in dividers
        if opening is not None and len(found.group("signs")) == len(opening.group("signs"))
    ]
    rows = alike or [row for row, _ in dividers]
    split = next((row for row in reversed(rows) if _occurs(body[:row], original)), rows[0])
    if any(body[row] not in original for row in rows if row != split):
        raise InvalidRequest("A SEARCH/REPLACE block has ======= twice, so its parts are unclear.")
    return Block(tuple(body[:split]), tuple(body[split + 1 :]))


def _occurs(part: Sequence[str], original: Sequence[str]) -> bool:
    wanted = [line.strip() for line in part]
    have = [line.strip() for line in original]
    return any(have[at : at + len(wanted)] == wanted for at in range(len(have) - len(wanted) + 1))
