"""The lines of a text with what matching needs: normal form, depth, weight, symbol, blocks.

Normal forms are for comparing only; they are never written.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property

from apply_server.languages import is_markdown
from apply_server.snippet.symbols import Symbol, symbol_of

_LOOKALIKES = str.maketrans("‘’‚‛“”„‟‐‑‒–—―", "''''\"\"\"\"------")
_ALNUM = re.compile(r"[^\W_]")
_COMMON = frozenset(
    {
        "else",
        "try",
        "finally",
        "end",
        "return",
        "pass",
        "break",
        "continue",
        "begin",
        "do",
        "then",
        "fi",
        "done",
        "esac",
        "endif",
        "endfor",
        "default",
        "loop",
        "except",
        "catch",
        "elsif",
        "endfunction",
        "return0",
        "returnnil",
        "returntrue",
        "returnfalse",
        "returnnull",
        "returnnone",
        "returnerr",
        "override",
    }
)
_CLOSER = re.compile(r"^(?:[)\]}>]|end\b|fi\b|done\b|esac\b|end\w+\b|</)")
_SECTIONED = frozenset(
    {"toml", "ini", "cfg", "conf", "dosini", "properties", "editorconfig", "gitconfig", "systemd"}
)
_BELOW_HEADINGS = 8
_TITLE = Symbol("key", "# title")
TAB = 4


def normal_form(text: str) -> str:
    """`text` with lookalike characters and runs of blanks made the same."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_LOOKALIKES)
    return " ".join(text.split())


def width(line: str) -> int:
    """Columns of leading whitespace, a tab reaching to the next multiple of four."""
    columns = 0
    for char in line:
        if char == "\t":
            columns += TAB - columns % TAB
        elif char == " ":
            columns += 1
        else:
            break
    return columns


def is_closer(text: str) -> bool:
    return _CLOSER.match(text) is not None


class Lines:
    """An indexed view of lines without endings."""

    def __init__(self, raw: Sequence[str], language: str | None) -> None:
        self.raw = list(raw)
        self.text = [line.strip() for line in self.raw]
        self.norm = [normal_form(line) for line in self.text]
        self.depth = [
            width(line) if text else -1 for line, text in zip(self.raw, self.text, strict=True)
        ]
        self.headings = is_markdown(language)
        self.sections = (language or "").lower() in _SECTIONED

    def __len__(self) -> int:
        return len(self.raw)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Normal form → where it occurs, ascending."""
        found: dict[str, list[int]] = {}
        for at, norm in enumerate(self.norm):
            found.setdefault(norm, []).append(at)
        return found

    @cached_property
    def symbols(self) -> list[Symbol | None]:
        found = [symbol_of(text, self.headings) for text in self.text]
        titles = [at for at, text in enumerate(self.text) if text.startswith("# ")]
        if self.headings and len(titles) == 1:
            found[titles[0]] = _TITLE
        return found

    @cached_property
    def symbol_places(self) -> dict[Symbol, list[int]]:
        found: dict[Symbol, list[int]] = {}
        for at, symbol in enumerate(self.symbols):
            if symbol is not None:
                found.setdefault(symbol, []).append(at)
        return found

    def common(self, at: int) -> bool:
        """Lines that say nothing about where they stand: blanks, brackets, bare keywords."""
        letters = "".join(_ALNUM.findall(self.norm[at]))
        return letters.lower() in _COMMON or not letters

    def weight(self, at: int, occurrences: int) -> float:
        """How much a match of this line tells, from its length and how often it occurs."""
        if not self.text[at]:
            return 0.1
        if self.common(at):
            return 0.3
        letters = len(_ALNUM.findall(self.norm[at]))
        return (0.6 + min(letters, 30) / 30 * 1.4) / (1 + 0.5 * math.log2(max(1, occurrences)))

    @cached_property
    def level(self) -> list[int]:
        """Nesting depth, -1 for blanks: indentation, and below headings one step more."""
        if not self.headings and not self.sections:
            return self.depth
        levels = []
        for depth, symbol, text in zip(self.depth, self.symbols, self.text, strict=True):
            if depth < 0:
                levels.append(-1)
            elif self.headings and symbol is not None:
                levels.append(len(text) - len(text.lstrip("#")))
            elif self.sections and depth == 0 and text.startswith("["):
                levels.append(0)
            else:
                levels.append(depth + _BELOW_HEADINGS)
        return levels

    def block_end(self, at: int) -> int:
        """Where the block that line `at` opens ends, exclusive; its closing line is in it."""
        level, end = self.level[at], at + 1
        for below in range(at + 1, len(self.raw)):
            if self.level[below] < 0:
                continue
            if self.level[below] > level:
                end = below + 1
                continue
            same = self.level[below] == level
            if same and self.text[below] in {"{", "("} and end == at + 1:
                end = below + 1
                continue
            return below + 1 if same and is_closer(self.text[below]) else end
        return end
