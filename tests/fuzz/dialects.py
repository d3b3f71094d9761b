"""A known edit written down as people and models write edits, in every dialect."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator

from hypothesis import strategies as st

from tests.fuzz.edits import Hunk, KnownEdit, telling_once

_HASH = ("python", "ruby", "shellscript", "yaml", "toml", "makefile", "php")
_COMMENTS = {
    **dict.fromkeys(_HASH, "# {}"),
    "shell": "# {}",
    "lua": "-- {}",
    "sql": "-- {}",
    "html": "<!-- {} -->",
    "markdown": "<!-- {} -->",
    "css": "/* {} */",
}
_PHRASES = (
    "... existing code ...",
    "... rest of the code ...",
    "...",
    "… existing code …",
    "... (existing code) ...",
    "... keep existing code",
    "existing code remains unchanged",
    "... rest of file unchanged ...",
)


def comment(language: str, text: str) -> str:
    return _COMMENTS.get(language, "// {}").format(text)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


@st.composite
def lazy(draw: st.DrawFn, edit: KnownEdit) -> list[str]:
    """Segments between markers, below the headers of the blocks that they stand in, or not."""
    lines, phrase = edit.code.lines, draw(st.sampled_from(_PHRASES))
    nested, spaced = draw(st.booleans()), draw(st.booleans())
    out: list[str] = []
    at = 0
    for hunk in edit.hunks:
        headers = _headers(edit, hunk, at) if nested else []
        for row in [*headers, hunk.first]:
            if row > at:
                out += _marker(edit, phrase, row, spaced and bool(out))
            if row < hunk.first:
                out.append(lines[row])
            at = row + 1
        out += edit.after(hunk)
        at = hunk.last
    if at < len(lines):
        out += _marker(edit, phrase, at, False)
    return out


def _marker(edit: KnownEdit, phrase: str, row: int, spaced: bool) -> list[str]:
    """The marker above line `row`, as deep as it."""
    below = next((line for line in edit.code.lines[row:] if line.strip()), "")
    marker = _indent(below) + comment(edit.code.language, phrase)
    return ["", marker] if spaced else [marker]


def _headers(edit: KnownEdit, hunk: Hunk, floor: int) -> list[int]:
    """The lines, each less indented than the next, that the hunk stands below."""
    lines, once = edit.code.lines, telling_once(edit.code.lines)
    shown = [line for line in lines[hunk.first : hunk.last] if line.strip()]
    depth = min((len(_indent(line)) for line in shown), default=0)
    found: list[int] = []
    for row in range(hunk.first - 1, floor - 1, -1):
        if lines[row].strip() and len(_indent(lines[row])) < depth:
            depth = len(_indent(lines[row]))
            if once[row]:
                found.append(row)
    return found[::-1]


@st.composite
def search_replace(draw: st.DrawFn, edit: KnownEdit) -> list[str]:
    """Git-style, with or without a fence and a file name."""
    fenced, labels = draw(st.booleans()), draw(st.booleans())
    out: list[str] = []
    for hunk in edit.hunks:
        block = [
            "<<<<<<< SEARCH" if labels else "<<<<<<<",
            *edit.before(hunk),
            "=======",
            *edit.after(hunk),
            ">>>>>>> REPLACE" if labels else ">>>>>>>",
        ]
        out += ["src/file", "```", *block, "```", ""] if fenced else block
    return out


@st.composite
def unified(draw: st.DrawFn, edit: KnownEdit) -> list[str]:
    """With the right line numbers, wrong ones or none, with or without the files' header."""
    header = draw(
        st.sampled_from([[], ["--- a/f", "+++ b/f"], ["diff --git a/f b/f", "--- a/f", "+++ b/f"]])
    )
    numbers = draw(st.sampled_from(["right", "counts wrong", "none"]))
    out = list(header)
    shift = 0
    for hunk in edit.hunks:
        before, after = edit.before(hunk), edit.after(hunk)
        counts = (len(before), len(after)) if numbers == "right" else (7, 3)
        first = hunk.first + 1
        place = f" -{first},{counts[0]} +{first + shift},{counts[1]} @@"
        out.append("@@" + (place if numbers != "none" else " ... @@"))
        out += _marked(edit, hunk)
        shift += len(after) - len(before)
    return out


def _marked(edit: KnownEdit, hunk: Hunk) -> Iterator[str]:
    """The hunk's lines as a diff's: " ", "-" or "+" before each."""
    lines = edit.code.lines
    yield from (" " + line for line in lines[hunk.first : hunk.start])
    old = lines[hunk.start : hunk.end]
    for code, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, hunk.new, False).get_opcodes():
        if code == "equal":
            yield from (" " + line for line in old[i1:i2])
        else:
            yield from ("-" + line for line in old[i1:i2])
            yield from ("+" + line for line in hunk.new[j1:j2])
    yield from (" " + line for line in lines[hunk.end : hunk.last])


@st.composite
def v4a(draw: st.DrawFn, edit: KnownEdit) -> list[str]:
    """With the header above a hunk in its @@ line, or nothing there."""
    named = draw(st.booleans())
    out = ["*** Begin Patch", "*** Update File: src/file"]
    at = 0
    for hunk in edit.hunks:
        headers = _headers(edit, hunk, at) if named else []
        out.append(f"@@ {edit.code.lines[headers[-1]].strip()}" if headers else "@@")
        out += _marked(edit, hunk)
        at = hunk.last
    return [*out, "*** End Patch"]


def whole(edit: KnownEdit) -> st.SearchStrategy[list[str]]:
    """The file as it is to be."""
    return st.just(list(edit.expected))


DIALECTS: dict[str, Callable[[KnownEdit], st.SearchStrategy[list[str]]]] = {
    "lazy": lazy,
    "search_replace": search_replace,
    "unified": unified,
    "v4a": v4a,
    "whole": whole,
}
