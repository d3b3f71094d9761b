"""Edits whose result is known: lines of a file replaced between neighbours that it has once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from apply_server.snippet.markers import is_marker
from tests.fuzz.documents import Code

_CONTEXT = 3
_MOST_HUNKS = 3


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines `start` to `end` become `new`; a snippet shows `first` to `last` around them."""

    first: int
    start: int
    end: int
    last: int
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KnownEdit:
    """Ascending hunks of `code`, with at least one line of the file between what they show."""

    code: Code
    hunks: tuple[Hunk, ...]

    @property
    def expected(self) -> tuple[str, ...]:
        """The file's lines after the edit."""
        out: list[str] = []
        at = 0
        for hunk in self.hunks:
            out += (*self.code.lines[at : hunk.start], *hunk.new)
            at = hunk.end
        return (*out, *self.code.lines[at:])

    def before(self, hunk: Hunk) -> tuple[str, ...]:
        """What the file has where the hunk and its context stand."""
        return self.code.lines[hunk.first : hunk.last]

    def after(self, hunk: Hunk) -> tuple[str, ...]:
        """What is to stand there."""
        lines = self.code.lines
        return (*lines[hunk.first : hunk.start], *hunk.new, *lines[hunk.end : hunk.last])


def telling_once(lines: Sequence[str]) -> list[bool]:
    """Which lines the file has once and that say something."""
    forms = ["".join(line.split()).casefold() for line in lines]
    counts = Counter(forms)
    return [
        counts[form] == 1 and sum(char.isalnum() for char in form) >= 4 and not is_marker(line)
        for form, line in zip(forms, lines, strict=True)
    ]


@st.composite
def known_edits(draw: st.DrawFn, code: Code) -> KnownEdit:
    """Up to three hunks; none where no line of the file is a sure neighbour."""
    once = telling_once(code.lines)
    hunks: list[Hunk] = []
    free = 0
    for _ in range(draw(st.integers(1, _MOST_HUNKS))):
        above = [at for at in range(free, len(code.lines)) if once[at]]
        if len(above) < 2:
            break
        upper = draw(st.sampled_from(above[:-1]))
        below = [at for at in above if upper < at <= upper + 8]
        if not below:
            break
        lower = draw(st.sampled_from(below))
        first = draw(st.integers(max(free, upper - _CONTEXT), upper))
        last = draw(st.integers(lower + 1, min(len(code.lines), lower + 1 + _CONTEXT)))
        new = draw(_new_lines(code.lines, upper + 1, lower))
        if new != code.lines[upper + 1 : lower]:
            hunks.append(Hunk(first, upper + 1, lower, last, new))
        free = last + 1
    return KnownEdit(code, tuple(hunks))


@st.composite
def _new_lines(draw: st.DrawFn, lines: Sequence[str], start: int, end: int) -> tuple[str, ...]:
    """Some of the old lines, changed ones and new ones."""
    above = lines[start - 1]
    indent = above[: len(above) - len(above.lstrip())]
    number = draw(st.integers(100, 999))
    new = []
    for at in range(start, end):
        fate = draw(st.sampled_from(["keep", "keep", "drop", "change", "follow"]))
        if fate in ("keep", "follow"):
            new.append(lines[at])
        if fate == "change" and lines[at].strip():
            new.append(f"{lines[at]}_{number}")
        if fate == "follow":
            new.append(f"{indent}novel_{number}_{at}(alpha)")
    if start == end or (not new and draw(st.booleans())):
        count = draw(st.integers(1, 3))
        new += [f"{indent}novel_{number}_{at}(beta)" for at in range(count)]
    return tuple(new)
