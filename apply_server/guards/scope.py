"""Which lines an edit is about, by its merge or by the words it uses.

Only this module reads the user's words. Must not know what a guard makes of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from apply_server.guards.model import GuardInput

_WORD = re.compile(r"[^\W\d]\w{2,}")
_PART = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}|[^\W\d_a-zA-Z]{2,}")
_CLOSING = re.compile(r"^\s*(?:[)\]}]|end\b|fi\b|done\b|esac\b|</)")
_LEADING = re.compile(r"^\s*(?:#(?!include)|//|/\*|\*|--|@|\[\w|<!--)")
# Verbs by their stems: what they ask for can leave fewer lines than there were.
_SHRINKING = re.compile(
    r"\b(?:delet|remov|drop|clear|empt|eras|strip|wip|truncat|discard|rid of|cut|trim|prun|purg|"
    r"eliminat|clean|simplif|shorten|inlin|merg|combin|collaps|consolidat|replac|rewrit|refactor|"
    r"mov|extract|split|revert|undo|only|reduc|dedup|unused|without|convert|migrat|switch)",
    re.IGNORECASE,
)
_WHOLE = re.compile(
    r"\b(?:everything|from scratch|the rest|only line|(?:keep|leave) only|only keep)\b"
    r"|\b(?:all|whole|entire|complete|full)(?: of)?(?: the| this| its)? ?"
    r"(?:file|document|contents?|text|code|lines|thing)\b"
    r"|\b(?:empty|clear|erase|wipe|delete|truncate|rewrite|replace) (?:the|this) file\b",
    re.IGNORECASE,
)
# How close to a place that the edit names a change still belongs to it: a diff's context.
NEAR = 3
# A word that occurs more often than this, per line or in all, tells nothing about a place.
_COMMON_SHARE = 0.05
_COMMON_TIMES = 5


@dataclass(frozen=True, slots=True)
class Scope:
    """What an edit is about.

    `claimed` are rows of the original that it accounts for: those that the merge has `replaced`
    or inserts beside, and those named by its words. `exact` tells whether there was a merge.
    """

    given: GuardInput
    claimed: frozenset[int] = field(init=False)
    replaced: frozenset[int] = field(init=False)
    exact: bool = field(init=False)
    _named: frozenset[str] = field(init=False, repr=False)
    _counts: Counter[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = self.given
        texts = [words(line) for line in given.original]
        replaced = (range(start, end) for start, end in given.hunks or ())
        object.__setattr__(self, "replaced", frozenset(chain.from_iterable(replaced)))
        object.__setattr__(self, "exact", given.hunks is not None)
        object.__setattr__(self, "_named", _named(given))
        object.__setattr__(self, "_counts", Counter(chain.from_iterable(texts)))
        rows = _beside(given)
        if given.hunks is None or given.instruction.strip():
            rows |= named_rows(given.original, [self._telling(text) for text in texts])
        object.__setattr__(self, "claimed", frozenset(rows))

    def mentions(self, line: str) -> bool:
        """Whether the edit uses a word that tells this line from others."""
        return self._telling(words(line))

    def _telling(self, text: Sequence[str]) -> bool:
        """Common words tell nothing, unless a line has no rarer one: keywords need no list."""
        shared = [word for word in text if word in self._named]
        if not shared:
            return False
        limit = max(_COMMON_TIMES, _COMMON_SHARE * len(self.given.original))
        rarest = min(self._counts[word] for word in text)
        return any(self._counts[word] <= max(rarest, limit) for word in shared)

    def may_go(self, row: int) -> bool:
        """Nothing need come in the place of this row of the original."""
        named = row in self.claimed and _SHRINKING.search(self.given.instruction) is not None
        return named or row in self.replaced

    def asks_for_all(self) -> bool:
        """The instruction is about the whole file, or nearly all of it, and may leave little."""
        instruction = self.given.instruction
        return all(pattern.search(instruction) for pattern in (_SHRINKING, _WHOLE))


def words(text: str) -> list[str]:
    """The identifiers in `text`, in lower case."""
    return _WORD.findall(text.lower())


def named_rows(lines: Sequence[str], mentioned: Sequence[bool]) -> set[int]:
    """Rows that are mentioned, each with the block it opens and the comments right above it."""
    rows: set[int] = set()
    depth: int | None = None
    for row, line in enumerate(lines):
        own = len(line) - len(line.lstrip())
        if depth is not None and line.strip():
            closes = own == depth and _CLOSING.match(line) is not None
            if own > depth or closes:
                rows.add(row)
            if own <= depth:
                depth = None
        elif depth is not None:
            rows.add(row)
        if mentioned[row]:
            rows |= {row, *_above(lines, row)}
            depth = own if depth is None else depth
    return rows


def near(rows: Collection[int], row: int) -> bool:
    return any(close in rows for close in range(row - NEAR, row + NEAR + 1))


def _above(lines: Sequence[str], row: int) -> Iterator[int]:
    while row > 0 and _LEADING.match(lines[row - 1]):
        row -= 1
        yield row


def _beside(given: GuardInput) -> set[int]:
    """The rows of the hunks; of an insertion, which has none, those on both sides of it."""
    rows: set[int] = set()
    for start, end in given.hunks or ():
        rows.update(range(start, end) if start < end else (start - 1, start))
    return rows


def _named(given: GuardInput) -> frozenset[str]:
    """The edit's words; of an instruction also their parts, as people write "the cart total"."""
    parts = {part.lower() for part in _PART.findall(given.instruction)}
    return frozenset({*words(given.instruction), *words(given.snippet), *parts})
