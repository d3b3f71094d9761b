"""Which lines of a snippet stand for "the code that is already there".

A marker is a comment alone on its line, in any language's comment syntax, made of the words people
use for unmentioned code. Must not know where a marker's code lies in a file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PAIRS = (
    ("{/*", "*/}"),
    ("/*", "*/"),
    ("<!--", "-->"),
    ("<%--", "--%>"),
    ("{#", "#}"),
    ("@*", "*@"),
    ("(*", "*)"),
    ("{-", "-}"),
)
_OPENERS = re.compile(r"(?://+|#+|--+|;+|%+|\.\.(?=\s)|\"(?=\s)|'(?=\s)|!+(?=\s)|REM\b)!?\s*")
_LEADING_DOTS = re.compile(r"[\s\-=*(\[]*(?:\.\.|…)")
# For the text read backwards: searching for the end forwards takes quadratic time.
_TRAILING_DOTS = re.compile(r"[\s\-=*)\]]*(?:\.\.|…)")
_WORD = re.compile(r"[A-Za-z'’]+")
_KEEP = frozenset(
    {
        "existing",
        "rest",
        "remaining",
        "remainder",
        "unchanged",
        "same",
        "previous",
        "original",
        "omitted",
    }
)
_NOUNS = frozenset(
    {
        "code",
        "content",
        "contents",
        "text",
        "file",
        "implementation",
        "implementations",
        "method",
        "methods",
        "function",
        "functions",
        "import",
        "imports",
        "class",
        "classes",
        "logic",
        "statements",
        "lines",
        "body",
        "definitions",
    }
)
_FILLERS = frozenset(
    {
        "of",
        "the",
        "this",
        "your",
        "our",
        "all",
        "other",
        "and",
        "here",
        "is",
        "are",
        "as",
        "before",
        "above",
        "below",
        "remains",
        "remain",
        "stays",
        "stay",
        "goes",
        "in",
        "unchanged",
        "to",
        "with",
        "no",
        "changes",
        "for",
        "brevity",
        "from",
        "it",
        "not",
        "shown",
        "continues",
        "keep",
        "everything",
        "else",
        "rest",
        "above's",
        "file's",
        "same",
        "existing",
        "remaining",
    }
)
_MOST_WORDS = 10


def is_marker(line: str) -> bool:
    """Whether `line` alone reads as "existing code" in some comment syntax."""
    comment = _comment_text(line.strip())
    if comment is None:
        return False
    dots_before = _LEADING_DOTS.match(comment) is not None
    words = [word.lower() for word in _WORD.findall(comment)]
    if not words:
        return dots_before and not any(char.isalnum() for char in comment)
    if len(words) > _MOST_WORDS or any(char in comment for char in ';{}<>=|&`"$'):
        return False
    keeps = any(word in _KEEP for word in words)
    if dots_before and (keeps or words[0] == "keep"):
        return True
    return keeps and _is_stock_phrase(words, _ends_in_dots(comment))


def marker_rows(snippet: Sequence[str], original: Sequence[str]) -> set[int]:
    """Indices of the snippet's markers; a line the file itself has at that place is none."""
    rows = {row for row, line in enumerate(snippet) if is_marker(line)}
    if not rows:
        return rows
    places: dict[str, list[int]] = {}
    for at, line in enumerate(original):
        places.setdefault(line.strip(), []).append(at)
    return {
        row
        for row in rows
        if not any(
            _same_surroundings(snippet, row, original, at)
            for at in places.get(snippet[row].strip(), ())
        )
    }


def _comment_text(text: str) -> str | None:
    for opening, closing in _PAIRS:
        if text.startswith(opening) and text.endswith(closing):
            inner = text[len(opening) : len(text) - len(closing)]
            return None if closing in inner else inner.strip(" *-")
    match = _OPENERS.match(text)
    if match is not None and match.group(0).strip():
        return text[match.end() :]
    bare = _LEADING_DOTS.match(text) is not None and _ends_in_dots(text)
    return text if bare and _WORD.search(text) else None


def _ends_in_dots(text: str) -> bool:
    return _TRAILING_DOTS.match(text[::-1]) is not None


def _is_stock_phrase(words: Sequence[str], dots_after: bool) -> bool:
    """Without leading dots only the stock phrases count: comments say "rest" and "same" too."""
    if any(word not in _KEEP | _NOUNS | _FILLERS for word in words):
        return False
    if any(word in _NOUNS for word in words):
        return True
    return dots_after or words in (["unchanged"], ["rest", "unchanged"])


def _same_surroundings(snippet: Sequence[str], row: int, original: Sequence[str], at: int) -> bool:
    """The lines above and below are the same in both, so the line is text, not a marker."""
    above = row > 0 and at > 0 and snippet[row - 1].strip() == original[at - 1].strip()
    below = (
        row + 1 < len(snippet)
        and at + 1 < len(original)
        and snippet[row + 1].strip() == original[at + 1].strip()
    )
    return above and below
