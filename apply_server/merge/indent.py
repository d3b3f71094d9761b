"""Indentation of a snippet's lines, carried over to the style and depth of the file.

Levels are mapped between tabs and spaces; nothing but leading whitespace changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apply_server.merge.lines import TAB, width


@dataclass(frozen=True, slots=True)
class Style:
    """`tabs`: one tab a level; else `unit` spaces a level. `known`: the text has indented lines."""

    tabs: bool
    unit: int
    known: bool


def style_of(lines: Iterable[str], default: int = 4) -> Style:
    tabs = spaces = 0
    steps: Counter[int] = Counter()
    before = 0
    for line in lines:
        if not line.strip():
            continue
        tabs += line[0] == "\t"
        spaces += line[0] == " "
        depth = width(line)
        if depth - before > 1:
            steps[depth - before] += 1
        before = depth
    if tabs > spaces:
        return Style(True, TAB, True)
    unit = steps.most_common(1)[0][0] if steps else default
    return Style(False, unit if unit in (2, 3, 4, 8) else default, spaces > 0)


@dataclass(frozen=True, slots=True)
class Reindent:
    """A mapping of leading whitespace: none, or by levels and a shift in levels or columns."""

    source: Style
    target: Style
    convert: bool = False
    shift: int = 0

    @property
    def identity(self) -> bool:
        return not self.convert and not self.shift

    def line(self, line: str) -> str:
        text = line.lstrip(" \t")
        if self.identity or not text.strip():
            return line
        return self.indent(line) + text

    def indent(self, line: str) -> str:
        columns = width(line)
        if self.convert:
            levels, rest = divmod(columns, self.source.unit)
            levels = max(0, levels + self.shift)
            if self.target.tabs:
                return "\t" * levels + " " * rest
            return " " * (levels * self.target.unit + rest)
        columns = max(0, columns + self.shift)
        if self.target.tabs:
            return "\t" * (columns // TAB) + " " * (columns % TAB)
        return " " * columns


def fit(pairs: Sequence[tuple[str, str]], source: Style, target: Style) -> Reindent:
    """The mapping that most (snippet line, original line) pairs agree with; identity if any does.

    A line that moved deeper on purpose stands beside lines that did not, so one line that agrees
    is enough to leave a segment's indentation alone.
    """
    same = Reindent(source, target)
    differ = source.tabs != target.tabs and source.known and target.known
    indented = [pair for pair in pairs if width(pair[0]) or width(pair[1])]
    if not indented:
        return Reindent(source, target, convert=True) if differ else same
    if any(_leading(ours) == _leading(theirs) for ours, theirs in indented):
        return same
    votes: Counter[Reindent] = Counter()
    for ours, theirs in indented:
        shift = width(theirs) - width(ours)
        levels = width(theirs) // target.unit - width(ours) // source.unit
        votes[Reindent(source, target, convert=True, shift=levels)] += 1
        if not differ:
            votes[Reindent(source, target, shift=shift)] += 1
    most = max(votes.values())
    return min(
        (mapping for mapping, count in votes.items() if count == most),
        key=lambda mapping: (mapping.convert != differ, abs(mapping.shift)),
    )


def _leading(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
