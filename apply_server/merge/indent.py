"""Indentation of a snippet's lines, carried over to the style and depth of the file.

Levels are mapped between tabs and spaces; nothing but leading whitespace changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from apply_server.merge.lines import TAB, width

_UNITS = (2, 3, 4, 8)
_RARE = 0.15


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
    total = sum(steps.values())
    usual = [step for step in _UNITS if steps[step] > _RARE * total]
    return Style(False, usual[0] if usual else default, spaces > 0)


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
    if differ and target.tabs:
        source = replace(source, unit=_unit_beside_tabs(indented, source.unit))
    votes: Counter[Reindent] = Counter()
    for ours, theirs in indented:
        shift = width(theirs) - width(ours)
        levels = width(theirs) // target.unit - width(ours) // source.unit
        votes[Reindent(source, target, convert=True, shift=levels)] += 1
        if not differ:
            votes[Reindent(source, target, shift=shift)] += 1
    by_level = Reindent(source, target, convert=True)
    if differ and votes[by_level]:
        return by_level
    most = max(votes.values())
    return min(
        (mapping for mapping, count in votes.items() if count == most),
        key=lambda mapping: (mapping.convert != differ, abs(mapping.shift)),
    )


def _unit_beside_tabs(pairs: Sequence[tuple[str, str]], default: int) -> int:
    """The spaces that stand for one tab, by the lines that both texts have."""
    units: Counter[int] = Counter()
    for ours, theirs in pairs:
        tabs = width(theirs) // TAB
        if tabs and width(ours) % tabs == 0:
            units[width(ours) // tabs] += 1
    if units[default]:
        return default
    known = [unit for unit, _ in units.most_common() if unit in _UNITS]
    return known[0] if known else default


def _leading(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
