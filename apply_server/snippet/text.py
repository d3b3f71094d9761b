"""Lines without endings, and the one code fence people wrap around an edit.

Lines end at LF, CRLF and CR only: form feeds, U+2028 and the like are ordinary characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from apply_server.languages import is_markdown

_EOL = re.compile(r"\r\n|\n|\r")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})([^`\n]*)$")


def split_lines(text: str) -> list[str]:
    """The lines of `text` without their endings; a final ending starts no further line."""
    lines = _EOL.split(text)
    if lines and lines[-1] == "":
        lines.pop()
    return lines


def strip_fence(lines: Sequence[str], language: str | None) -> list[str]:
    """Drop one code fence around all of `lines`, unless fences are the target's own text."""
    body = _strip_blank_ends(lines)
    if is_markdown(language) or len(body) < 2:
        return list(lines)
    opening, closing = _FENCE.match(body[0]), _FENCE.match(body[-1])
    if opening is None or closing is None or closing.group(2).strip():
        return list(lines)
    if not closing.group(1).startswith(opening.group(1)):
        return list(lines)
    return body[1:-1]


def _strip_blank_ends(lines: Sequence[str]) -> list[str]:
    start, end = 0, len(lines)
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return list(lines[start:end])
