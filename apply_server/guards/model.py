"""What a guard gets and what it says. Must not know which guards there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from apply_server.line_diff import LineEdit

Level = Literal["warn", "block"]
Side = Literal["original", "result"]


@dataclass(frozen=True, slots=True)
class GuardInput:
    """A finished rewrite and what was asked for; lines carry no endings.

    `edits` turn `original` into `final` (ascending, disjoint). `language` is a language server's
    id or a plain name, None or "" where unknown. `hunks` are spans (start, end) of the original
    that a merge of the snippet replaces; None where there is no snippet, or where its merge failed
    or is in doubt: then the words of the edit tell what it is about. `max_removal` is the share of
    the original's characters that may go though the edit doesn't say so.
    """

    original: tuple[str, ...]
    final: tuple[str, ...]
    edits: tuple[LineEdit, ...]
    instruction: str = ""
    snippet: str = ""
    language: str | None = None
    hunks: tuple[tuple[int, int], ...] | None = None
    max_removal: float = 0.6

    def removed(self) -> tuple[str, ...]:
        """The original's lines that no longer stand where they stood."""
        return tuple(line for edit in self.edits for line in self.original[edit.start : edit.end])

    def added(self) -> Iterator[tuple[int, str]]:
        """(row of the result, line) for each line that an edit brought."""
        shift = 0
        for edit in self.edits:
            yield from enumerate(edit.lines, start=edit.start + shift)
            shift += len(edit.lines) - (edit.end - edit.start)

    def gone(self) -> Iterator[int]:
        """Rows of the original, blank ones left out, that the edits take and don't put back."""
        put_back = Counter(line for edit in self.edits for line in edit.lines)
        for edit in self.edits:
            for row in range(edit.start, edit.end):
                line = self.original[row]
                if put_back[line]:
                    put_back[line] -= 1
                elif line.strip():
                    yield row


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that looks wrong.

    `guard` is the name that overrides it, `message` one sentence a person can act on, `lines` (from
    1) where it is in the original or in the result, as `side` says.
    """

    guard: str
    level: Level
    message: str
    lines: tuple[int, ...] = ()
    side: Side = "result"

    def to_json(self) -> dict[str, object]:
        """For reports and for a program that was refused."""
        return {
            "guard": self.guard,
            "level": self.level,
            "message": self.message,
            "lines": list(self.lines),
            "side": self.side,
        }
