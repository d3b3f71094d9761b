"""What a line names: a function, a type, a heading, a key. By shape, without a parser.

A parser would need a clean parse, and files that are being edited often have none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["definition", "key"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """`definition` opens a block of its own; `key` is an assignment or an entry."""

    kind: Kind
    name: str


_KEYWORD = re.compile(
    r"^(?:[\w@!*]+(?:\s*\([^)]*\))?\s+)*?"
    r"(?:def|class|function\*?|func|fn|struct|enum|interface|trait|impl|type|module|namespace|"
    r"sub|procedure|proc|record|object|protocol|extension|macro|union|mod|contract|"
    r"describe|resource|message|service|rpc)"
    r"\s+(?:\([^)]*\)\s*)?(?P<name>[A-Za-z_$][\w$.:]*[?!]?)"
)
_LISP = re.compile(r"^\(def\w*\s+(?P<name>[^\s()]+)")
_ARROW = re.compile(
    r"^(?:(?:export|default|const|let|var|local|public|private|protected|static|readonly)\s+)+"
    r"(?P<name>[\w$]+)[^=]*=\s*"
    r"(?:async\s+)?(?:\(.*=>|\w+\s*=>|function\b|\($)"
)
_TYPED = re.compile(
    r"^(?:\[[^\]]*\]\s*)?(?:[A-Za-z_][\w<>\[\],.?&*:]*\s+[&*]*)+(?P<name>[~\w:]+)(?:<[^()]*>)?\s*\([^;]*$"
)
_METHOD = re.compile(
    r"^(?:async\s+|static\s+|get\s+|set\s+|\*\s*)*(?P<name>[#$\w]+)\s*\([^;]*\)"
    r"(?:\s*:\s*[^{;]+)?\s*\{$"
)
_CONTROL = re.compile(
    r"^(?:if|else|elif|for|foreach|while|switch|case|catch|return|throw|new|await|yield|with|do|"
    r"try|using|lock|when|match|unless|until|assert|print|delete|not|and|or|in|raise|goto|go|"
    r"defer|except|finally|import|from|echo|let|const|var|}|\))\b"
)
_HEADING = re.compile(r"^(?P<name>#{1,6}\s+\S.*?)\s*#*$")
_SECTION = re.compile(r"^\[{1,2}(?P<name>[^\[\]=(),{}]+)\]{1,2}$")
_RULE = re.compile(r"^(?P<name>[.#@&:\w\[*][^{};=()]*?)\s*\{")
_ASSIGN = re.compile(
    r"^(?:(?:export|public|private|protected|internal|static|final|readonly|const|let|var|local|"
    r"my|our|val|mut|set|declare)\s+)*(?:[A-Za-z_][\w<>\[\],.?]*\s+)?"
    r"(?P<name>[A-Za-z_$@][\w$.\-]*)\s*(?::\s*[^=]+?)?(?::=|\+=|\?=|=)(?!=|>)"
)
_ENTRY = re.compile(r"^(?:-\s+)?[\"']?(?P<name>[A-Za-z_@$][\w\-./@ ]*?)[\"']?\s*:(?:\s|$)")

_DEFINITIONS = (_KEYWORD, _LISP, _ARROW, _TYPED, _METHOD)
_KEYS = (_ASSIGN, _ENTRY)


def symbol_of(text: str, headings: bool = False) -> Symbol | None:
    """The symbol that `text`, a line without its indentation, names first; None if none.

    `headings`: `#` starts a heading rather than a comment.
    """
    if not text or len(text) > 400:
        return None
    if headings:
        found = _HEADING.match(text)
        return Symbol("definition", found.group("name")) if found else None
    if text[0] in "#/*" and not text.startswith("#"):
        return None
    if not _CONTROL.match(text) or _ARROW.match(text):
        for pattern in (*_DEFINITIONS, _SECTION):
            found = pattern.match(text)
            if found:
                return Symbol("definition", found.group("name"))
    for pattern in (*_KEYS, _RULE):
        found = pattern.match(text)
        named = pattern is _ASSIGN or not _CONTROL.match(text.removeprefix("- "))
        if found and named:
            return Symbol("key", found.group("name"))
    return None
