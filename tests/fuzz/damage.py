"""Edits as they arrive: cut off, mangled, wrapped up, or no edits at all."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tests.fuzz.dialects import comment
from tests.fuzz.documents import ENDINGS, ODD

SYNTAX = (
    "# ... existing code ...",
    "    // ... rest of the code ...",
    "/* ... */",
    "<!-- unchanged -->",
    "{/* ... existing code ... */}",
    "...",
    "<<<<<<< SEARCH",
    "<<<<<<<",
    "=======",
    ">>>>>>> REPLACE",
    ">>>>>>>",
    "--- a/f",
    "+++ b/f",
    "diff --git a/f b/f",
    "@@ -1,2 +1,2 @@",
    "@@ -0,0 +1 @@",
    "@@ ... @@",
    "@@",
    "@@ def a():",
    "*** Begin Patch",
    "*** Update File: f",
    "*** Add File: g",
    "*** End of File",
    "*** End Patch",
    "```",
    "```python",
    "~~~~",
    "\\ No newline at end of file",
    "+",
    "-",
    " ",
    "+x = 3",
    "-x = 1",
    "rename from a",
    "index 1234..5678",
    "new file mode 100644",
    "Binary files a/f and b/f differ",
    "GIT binary patch",
)
_LONG = st.builds(
    lambda unit, count, end: unit * count + end,
    st.sampled_from(
        [
            "a ",
            "(",
            "# .",
            ".",
            "<",
            "=",
            " ",
            "\t",
            "a(",
            "* ",
            "[[",
            "T<",
            "x: ",
            "&*",
            "{{",
            "@@ ",
            "-",
        ]
    ),
    st.sampled_from([10, 60, 390, 2000, 20_000]),
    st.sampled_from(["", "x", "=", "{", "("]),
)

Damage = Callable[[st.DrawFn, list[str]], list[str]]


def damaged(draw: st.DrawFn, lines: list[str], language: str) -> list[str]:
    """`lines` after one to three of the things that go wrong."""
    for change in draw(st.lists(st.sampled_from(_DAMAGES), min_size=1, max_size=3)):
        lines = change(draw, lines)
    if draw(st.booleans()):
        row = draw(st.integers(0, len(lines)))
        lines = [*lines[:row], comment(language, "... existing code ..."), *lines[row:]]
    return lines


def joined(draw: st.DrawFn, lines: list[str]) -> str:
    """With one kind of ending, final or not."""
    ending = draw(st.sampled_from(ENDINGS))
    return ending.join(lines) + draw(st.sampled_from(["", ending]))


def garbage(pieces: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Lines of `pieces`, the syntax of all dialects, long lines and any text at all."""
    line = st.one_of(
        st.sampled_from(SYNTAX),
        st.sampled_from(pieces) if pieces else st.just(""),
        st.sampled_from(SYNTAX).flatmap(lambda sign: st.sampled_from([sign + " ", " " + sign])),
        st.builds(str.__add__, st.sampled_from([" ", "+", "-"]), st.sampled_from(pieces or ("",))),
        st.text(max_size=12),
        _LONG,
    )
    ending = st.sampled_from(ENDINGS)
    return st.one_of(
        st.builds(lambda sep, lines: sep.join(lines), ending, st.lists(line, max_size=16)),
        st.text(max_size=80),
    )


def _lose_line(draw: st.DrawFn, lines: list[str]) -> list[str]:
    row = draw(st.integers(0, max(0, len(lines) - 1)))
    return lines[:row] + lines[row + 1 :]


def _repeat_line(draw: st.DrawFn, lines: list[str]) -> list[str]:
    row = draw(st.integers(0, max(0, len(lines) - 1)))
    return lines[: row + 1] + lines[row:]


def _swap(draw: st.DrawFn, lines: list[str]) -> list[str]:
    row = draw(st.integers(0, max(0, len(lines) - 1)))
    return [*lines[:row], *lines[row : row + 2][::-1], *lines[row + 2 :]]


def _cut_off(draw: st.DrawFn, lines: list[str]) -> list[str]:
    row = draw(st.integers(0, len(lines)))
    return lines[:row]


def _cut_start(draw: st.DrawFn, lines: list[str]) -> list[str]:
    row = draw(st.integers(0, len(lines)))
    return lines[row:]


def _cut_in_line(draw: st.DrawFn, lines: list[str]) -> list[str]:
    row = draw(st.integers(0, max(0, len(lines) - 1)))
    return [
        *lines[:row],
        *(line[: draw(st.integers(0, len(line)))] for line in lines[row : row + 1]),
    ]


def _odd_character(draw: st.DrawFn, lines: list[str]) -> list[str]:
    row = draw(st.integers(0, max(0, len(lines) - 1)))
    odd = draw(st.sampled_from((*ODD, "\ud800", "\0")))
    return [*lines[:row], *(line + odd for line in lines[row : row + 1]), *lines[row + 1 :]]


def _shift_all(draw: st.DrawFn, lines: list[str]) -> list[str]:
    by = draw(st.sampled_from(["    ", "\t", " ", "> ", "> > "]))
    return [by + line for line in lines]


def _dedent_all(draw: st.DrawFn, lines: list[str]) -> list[str]:
    return [line.lstrip() for line in lines]


def _trim_all(draw: st.DrawFn, lines: list[str]) -> list[str]:
    return [line.rstrip() for line in lines]


def _drop_blanks(draw: st.DrawFn, lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip()]


def _fence(draw: st.DrawFn, lines: list[str]) -> list[str]:
    return [
        draw(st.sampled_from(["```", "```py", "~~~"])),
        *lines,
        draw(st.sampled_from(["```", "~~~"])),
    ]


def _syntax(draw: st.DrawFn, lines: list[str]) -> list[str]:
    row = draw(st.integers(0, len(lines)))
    return [*lines[:row], draw(st.sampled_from(SYNTAX)), *lines[row:]]


def _speech(draw: st.DrawFn, lines: list[str]) -> list[str]:
    return ["Here is the updated code:", "", *lines]


_DAMAGES: tuple[Damage, ...] = (
    _lose_line,
    _repeat_line,
    _swap,
    _cut_off,
    _cut_start,
    _cut_in_line,
    _odd_character,
    _shift_all,
    _dedent_all,
    _trim_all,
    _drop_blanks,
    _fence,
    _syntax,
    _speech,
)
