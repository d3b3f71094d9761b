"""Recognises the dialect of an edit. Must not know where in the file the edit goes."""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.errors import InvalidRequest
from apply_server.languages import is_markdown
from apply_server.snippet.lazy import parse_code
from apply_server.snippet.model import Edit
from apply_server.snippet.search_replace import is_search_replace, parse_search_replace
from apply_server.snippet.text import outdented, split_lines, strip_fence, without_words
from apply_server.snippet.unified import is_bare_diff, is_unified, parse_unified
from apply_server.snippet.v4a import is_v4a, parse_v4a

_DIFFS = frozenset({"diff", "patch"})


def parse_snippet(snippet: str, original_lines: Sequence[str], language: str | None) -> Edit:
    """Parse what the user handed over.

    `snippet` may use any line endings. `original_lines` carry none; they tell a marker from a
    comment that is really in the file, and a patch from a rewrite. Raises InvalidRequest for an
    edit with nothing in it, for one that is cut off and for one that changes several files.
    """
    lines = split_lines(snippet.removeprefix("\ufeff"))
    lines = strip_fence(lines, original_lines, language)
    lines[:1] = [line.removeprefix("\ufeff") for line in lines[:1]]
    if not any(line.strip() for line in lines):
        raise InvalidRequest("The edit is empty. Hand over a snippet or an instruction.")
    lines = without_words(lines, original_lines, language)
    if is_search_replace(lines, original_lines):
        return parse_search_replace(lines, original_lines)
    flush = outdented(lines)
    if is_v4a(flush, original_lines):
        return parse_v4a(flush)
    if (language or "").lower() not in _DIFFS:
        if is_unified(flush, original_lines, is_markdown(language)):
            return parse_unified(flush)
        if is_bare_diff(lines, original_lines):
            return parse_unified(["@@", *lines])
    return parse_code(lines, original_lines, language)
