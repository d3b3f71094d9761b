"""Unified diffs, also as models write them: wrong counts, no counts, no file header.

The hunk headers are recounted before the diff goes to the parser; line numbers are only hints.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk as DiffHunk
from unidiff.patch import PatchSet

from apply_server.errors import InvalidRequest
from apply_server.snippet.model import Block, Edit

_HEADER = re.compile(r"^@@(?: -(?P<start>\d+)(?:,\d+)? \+\d+(?:,\d+)?)?(?: .*?)?(?:@@|$)")
_NUMBERED = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_FILE_START = re.compile(r"^(diff --git |index [0-9a-f]+\.\.|(new|deleted) file mode |rename )")


def is_unified(lines: Sequence[str], original: Sequence[str], headings: bool) -> bool:
    """A file's or a hunk's header where a diff has it, or anywhere outside of Markdown.

    `headings`: the file is Markdown, whose text may hold a diff.
    """
    filled = [line for line in lines if line.strip()]
    headers = [row for row, line in enumerate(filled) if _HEADER.match(line)]
    if not headings and _has_header(filled, frozenset(original)):
        return True
    if not headers or not any(line[:1] in "+-" for line in filled[headers[0] + 1 :]):
        return False
    return headers[0] == 0 or any(
        _FILE_START.match(line) or line.startswith("--- ") for line in filled[: headers[0]]
    )


def _has_header(filled: Sequence[str], held: Collection[str]) -> bool:
    pairs = pairwise(filled)
    return any(
        line not in held and (_NUMBERED.match(line) or line.startswith("diff --git "))
        for line in filled
    ) or any(
        one not in held and one.startswith("--- ") and two.startswith("+++ ") for one, two in pairs
    )


def is_bare_diff(lines: Sequence[str], original: Sequence[str]) -> bool:
    """A hunk without its header: marked lines, of which the file has those it is to have."""
    filled = [line for line in lines if line.strip()]
    held = frozenset(original)
    if not filled or any(line[0] not in " +-" for line in filled) or held.intersection(filled):
        return False
    old = [line[1:] for line in filled if line[0] != "+" and line[1:].strip()]
    return bool(old) and len(old) < len(filled) and held.issuperset(old)


def parse_unified(lines: Sequence[str]) -> Edit:
    """Raises InvalidRequest for a diff of several files, or one that can't be read."""
    text, located = _recounted(lines)
    try:
        files = PatchSet(text)
    except UnidiffParseError as error:
        raise InvalidRequest(f"The diff can't be read: {error}") from error
    if len(files) != 1:
        raise InvalidRequest(f"The diff changes {len(files)} files; apply one file at a time.")
    if not located:
        raise InvalidRequest("The diff changes nothing: no line follows its @@ line.")
    hunks = zip(files[0], located, strict=True)
    return Edit("unified_diff", blocks=tuple(_block(hunk, known) for hunk, known in hunks))


def _recounted(lines: Sequence[str]) -> tuple[str, list[bool]]:
    """The diff with right counts, and for each hunk whether it said where it starts."""
    out: list[str] = []
    located: list[bool] = []
    starts = [row for row, line in enumerate(lines) if _HEADER.match(line)]
    if not starts:
        raise InvalidRequest("The diff is cut off: it has no @@ line.")
    preamble = [line for line in lines[: starts[0]] if line.startswith(("--- ", "+++ "))]
    out.extend(preamble if len(preamble) == 2 else ["--- a/file", "+++ b/file"])
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        header = _HEADER.match(lines[start])
        assert header is not None
        body, rest = _body(lines[start + 1 : stop])
        line = int(header.group("start") or 1)
        before = sum(text[:1] in " -" for text in body)
        after = sum(text[:1] in " +" for text in body)
        if body:
            out.append(f"@@ -{line},{before} +{line},{after} @@")
            out.extend(body)
            located.append(header.group("start") is not None)
        out.extend(rest)
    return "\n".join(out) + "\n", located


def _body(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """The hunk's lines, and the next file's header if one follows."""
    end = len(lines)
    for row, line in enumerate(lines):
        pair = line.startswith("--- ") and row + 1 < len(lines) and lines[row + 1][:4] == "+++ "
        if _FILE_START.match(line) or pair:
            end = row
            break
    body = [_marked(line) for line in lines[:end] if not line.startswith("\\")]
    while body and body[-1] == " ":
        body.pop()
    return body, [line for line in lines[end:] if line.startswith(("--- ", "+++ "))]


def _marked(line: str) -> str:
    """A context line whose leading blank was lost gets it back."""
    return line if line[:1] in {" ", "+", "-"} else " " + line


def _block(hunk: DiffHunk, located: bool) -> Block:
    before = tuple(line.value.removesuffix("\n") for line in hunk if not line.is_added)
    after = tuple(line.value.removesuffix("\n") for line in hunk if not line.is_removed)
    # A hunk without old lines names the line that the new ones follow.
    start = hunk.source_start - 1 if before else hunk.source_start
    return Block(before, after, hint=max(0, start) if located else None)
