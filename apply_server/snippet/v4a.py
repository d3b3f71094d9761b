"""V4A patches: `*** Begin Patch`, context named by `@@` lines, no line numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from apply_server.errors import InvalidRequest
from apply_server.snippet.model import Block, Edit

_BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_END_OF_FILE = "*** End of File"
_FILE = re.compile(r"^\*\*\* (?P<verb>Update|Add|Delete) File: ")


def is_v4a(lines: Sequence[str], original: Sequence[str]) -> bool:
    """A line of a patch's frame that the file itself doesn't have."""
    held = frozenset(original)
    return any(
        line not in held and (line.strip() in {_BEGIN, _END} or _FILE.match(line.strip()))
        for line in lines
    )


@dataclass(slots=True)
class _Part:
    context: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    at_end: bool = False

    @property
    def empty(self) -> bool:
        return not self.before and not self.after

    def block(self) -> Block:
        return Block(
            tuple(self.before),
            tuple(self.after),
            context=tuple(self.context),
            at_end=self.at_end,
        )


def parse_v4a(lines: Sequence[str]) -> Edit:
    """Raises InvalidRequest unless the patch is complete and updates exactly one file."""
    lines = _framed(lines)
    files = [found.group("verb") for line in lines if (found := _FILE.match(line.strip()))]
    if files != ["Update"]:
        raise InvalidRequest("The patch must update exactly one file; it can't add or delete one.")
    parts = [_Part()]
    for line in lines:
        if line.startswith("@@"):
            if not parts[-1].empty:
                parts.append(_Part())
            if line[2:].strip():
                parts[-1].context.append(line[2:].strip())
        elif line.strip() == _END_OF_FILE:
            parts[-1].at_end = True
        elif not line.startswith("*** "):
            _add(parts[-1], line)
    blocks = tuple(part.block() for part in parts if not part.empty)
    if not blocks:
        raise InvalidRequest("The patch changes nothing: it has no lines with + or -.")
    return Edit("v4a", blocks=blocks)


def _framed(lines: Sequence[str]) -> Sequence[str]:
    """What stands between the patch's first and last line; words around them are ignored."""
    texts = [line.strip() for line in lines]
    begins, ends = texts.count(_BEGIN), texts.count(_END)
    if (begins, ends) not in {(0, 0), (1, 1)}:
        raise InvalidRequest(
            "The patch is cut off: it needs one `*** Begin Patch` and one `*** End Patch`."
        )
    if not begins:
        return lines[next(row for row, text in enumerate(texts) if _FILE.match(text)) :]
    return lines[texts.index(_BEGIN) + 1 : texts.index(_END)]


def _add(part: _Part, line: str) -> None:
    sign, text = (line[0], line[1:]) if line[:1] in {" ", "+", "-"} else (" ", line)
    if not line and part.empty:
        return
    if sign != "+":
        part.before.append(text)
    if sign != "-":
        part.after.append(text)
