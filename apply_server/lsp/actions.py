"""Finds an edit that stands in the document itself: for editors that offer nothing better.

A person writes `# edit: …` above some lines, or pastes a snippet, selects it and asks for code
actions. Must not know messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from apply_server.document import Document
from apply_server.errors import ApplyError
from apply_server.languages import language_of
from apply_server.lsp.convert import lines_of
from apply_server.lsp.documents import Snapshot
from apply_server.lsp.protocol import Position, Range
from apply_server.snippet import parse_snippet

TITLE = "Apply this edit"
_INSTRUCTION = re.compile(
    r"""^\s*(?:\#|//|--|;+|%|"|/\*|\{/\*|<!--|\.\.)\s*edit:\s*(\S.*?)\s*(?:\*/\}?|-->)?\s*$""",
    re.IGNORECASE,
)
# What code of its own hardly ever is. A patch or a whole file could be any code.
_DIALECTS = frozenset({"lazy", "search_replace", "unified_diff", "v4a"})


@dataclass(frozen=True, slots=True)
class WrittenEdit:
    """An edit found in a document: `place` are its lines, `selection` those it is to change."""

    place: Range
    instruction: str = ""
    snippet: str = ""
    selection: Range | None = None


def edit_in(snapshot: Snapshot, selected: Range) -> WrittenEdit | None:
    """The edit that the selected lines are, or begin with."""
    lines = lines_of(selected)
    if lines is None:
        return None
    document = Document.from_text(snapshot.body)
    first, end = lines[0], min(lines[1], len(document.lines))
    texts = document.line_texts()
    filled = [row for row in range(first, end) if texts[row].strip()]
    if not filled:
        return None
    if found := _INSTRUCTION.match(texts[filled[0]]):
        rest = _rows(filled[0] + 1, end) if len(filled) > 1 else None
        return WrittenEdit(_rows(filled[0], filled[0] + 1), found[1], selection=rest)
    return _snippet(snapshot, texts, first, end)


def _snippet(
    snapshot: Snapshot, texts: tuple[str, ...], first: int, end: int
) -> WrittenEdit | None:
    snippet = "\n".join(texts[first:end])
    language = snapshot.language or language_of(snapshot.uri.name)
    try:
        edit = parse_snippet(snippet, texts[:first] + texts[end:], language)
    except ApplyError:
        return None
    return WrittenEdit(_rows(first, end), snippet=snippet) if edit.dialect in _DIALECTS else None


def _rows(first: int, end: int) -> Range:
    return Range(Position(first, 0), Position(end, 0))
