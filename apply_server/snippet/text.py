"""Lines without endings, and the one code fence people wrap around an edit.

Lines end at LF, CRLF and CR only: form feeds, U+2028 and the like are ordinary characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from apply_server.languages import is_markdown
from apply_server.snippet.markers import is_marker

_EOL = re.compile(r"\r\n|\n|\r")
_FENCE = re.compile(r"\s*(`{3,}+|~{3,}+)([^`\n]*)$")


def split_lines(text: str) -> list[str]:
    """The lines of `text` without their endings; a final ending starts no further line."""
    lines = _EOL.split(text)
    if lines and lines[-1] == "":
        lines.pop()
    return lines


def strip_fence(lines: Sequence[str], original: Sequence[str], language: str | None) -> list[str]:
    """Drop one code fence around all of `lines`, unless it is the target's own text."""
    body = _strip_blank_ends(lines)
    if len(body) < 2:
        return list(lines)
    opening, closing = _FENCE.match(body[0]), _FENCE.match(body[-1])
    if opening is None or closing is None or closing.group(2).strip():
        return list(lines)
    if not closing.group(1).startswith(opening.group(1)):
        return list(lines)
    if is_markdown(language) and not _wraps_markdown(body, opening.group(2).strip(), original):
        return list(lines)
    return body[1:-1]


def _wraps_markdown(body: Sequence[str], label: str, original: Sequence[str]) -> bool:
    """The fence is around Markdown: by its label, a marker at its edge or the file's first line."""
    inside = [line for line in body[1:-1] if line.strip()]
    if inside and (is_marker(inside[0]) or is_marker(inside[-1])):
        return True
    head = next((line for line in original if line.strip()), None)
    whole = inside[:1] == [head] and body[0] != head
    return (whole and not label) or (is_markdown(label) and body[0] not in original)


def without_words(lines: Sequence[str], original: Sequence[str], language: str | None) -> list[str]:
    """The inside of the only fence, if around it are words to the user rather than code.

    The file tells: it has lines of what is inside and none of what is outside.
    """
    rows = [row for row, line in enumerate(lines) if _FENCE.match(line)]
    if is_markdown(language) or len(rows) != 2 or any(lines[row][0].isspace() for row in rows):
        return list(lines)
    held = {line.strip() for line in original if line.strip()}
    inside = lines[rows[0] + 1 : rows[1]]
    outside = {line.strip() for line in (*lines[: rows[0]], *lines[rows[1] + 1 :])}
    known = any(line.strip() in held or line[1:].strip() in held for line in inside)
    return list(inside) if known and held.isdisjoint(outside) else list(lines)


def outdented(lines: Sequence[str]) -> list[str]:
    """Without the blanks that every line begins with."""
    filled = [line for line in lines if line.strip()]
    first = filled[0] if filled else ""
    blanks = first[: len(first) - len(first.lstrip(" \t"))]
    while not all(line.startswith(blanks) for line in filled):
        blanks = blanks[:-1]
    return [line[len(blanks) :] for line in lines]


def _strip_blank_ends(lines: Sequence[str]) -> list[str]:
    start, end = 0, len(lines)
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return list(lines[start:end])
