"""Runs an edit over text; texts are compared as whole strings."""

from __future__ import annotations

from apply_server.merge import Merge, merge
from apply_server.snippet import parse_snippet
from apply_server.snippet.text import split_lines


def run(original: str, edit: str, language: str | None = None) -> Merge:
    lines = split_lines(original)
    return merge(lines, parse_snippet(edit, lines, language), language)


def applied(original: str, edit: str, language: str | None = None) -> str:
    """The result, which has to be one that could be taken without asking a model."""
    result = run(original, edit, language)
    assert result.unambiguous, result.warnings
    return "".join(line + "\n" for line in result.lines)
