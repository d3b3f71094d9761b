"""SEARCH/REPLACE blocks: conflict markers around what is there and what is to be there.

What stands outside the blocks (file names, fences, prose) is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from apply_server.errors import InvalidRequest
from apply_server.snippet.model import Block, Edit

_OPEN = re.compile(r"^\s*(?P<signs><{5,9})\s?(?P<label>[\w ./:\-]*)$")
_CLOSE = re.compile(r"^\s*>{5,9}(\s?[\w ./:\-]*)$")
_DIVIDER = re.compile(r"^\s*={5,9}$")


def is_search_replace(lines: Sequence[str], original: Sequence[str]) -> bool:
    """An opening, a divider and a closing marker, and the file has no such conflict itself."""
    opens = [line for line in lines if _OPEN.match(line)]
    if not opens or any(line in set(original) for line in opens):
        return False
    return any(map(_DIVIDER.match, lines)) and any(map(_CLOSE.match, lines))


def parse_search_replace(lines: Sequence[str], original: Sequence[str]) -> Edit:
    """Raises InvalidRequest for a block that isn't closed or has no divider."""
    blocks = []
    at = 0
    while at < len(lines):
        if _OPEN.match(lines[at]) is None:
            at += 1
            continue
        end = next((row for row in range(at + 1, len(lines)) if _CLOSE.match(lines[row])), None)
        if end is None:
            raise InvalidRequest("A SEARCH/REPLACE block isn't closed with >>>>>>> REPLACE.")
        blocks.append(_block(lines[at + 1 : end], original))
        at = end + 1
    return Edit("search_replace", blocks=tuple(blocks))


def _block(body: Sequence[str], original: Sequence[str]) -> Block:
    """Split at the divider; the file tells which one it is where the text has such lines."""
    dividers = [row for row, line in enumerate(body) if _DIVIDER.match(line)]
    if not dividers:
        raise InvalidRequest("A SEARCH/REPLACE block has no ======= between its two parts.")
    split = next((row for row in reversed(dividers) if _occurs(body[:row], original)), dividers[0])
    return Block(tuple(body[:split]), tuple(body[split + 1 :]))


def _occurs(part: Sequence[str], original: Sequence[str]) -> bool:
    wanted = [line.strip() for line in part]
    have = [line.strip() for line in original]
    return any(have[at : at + len(wanted)] == wanted for at in range(len(have) - len(wanted) + 1))
