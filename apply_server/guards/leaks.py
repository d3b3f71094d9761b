"""What belongs to a conversation and not into a file: markers, fences, tags, thoughts, prose.

Each is looked for in what the edit brought, and counts only where it brought more than it took.
Must not know which model wrote the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from apply_server.guards.model import Finding, GuardInput, Level
from apply_server.languages import is_markdown
from apply_server.snippet.markers import is_marker
from apply_server.snippet.text import split_lines, strip_fence

MARKER = "leaked-marker"
FENCE = "leaked-fence"
THINKING = "leaked-thinking"
PROSE = "leaked-prose"

Key = Callable[[str], str]

# Files that hold prose of their own; "" is a file of unknown kind, as most texts are.
_TEXTS = frozenset({"", "latex", "plaintext", "restructuredtext", "text"})

_FENCE_LINE = re.compile(r"^\s*(?:`{3,}|~{3,})[\w+#.-]*\s*$")
_TAG = re.compile(
    r"</?(?:updated-code|update|start_of_turn|end_of_turn|fim_(?:prefix|suffix|middle))>"
    r"|^\s*</?code>\s*$|<\|[\w.-]{2,}\|>|<｜[^｜\n]+｜>|\[/?INST\]"
)
_THOUGHT = re.compile(r"</?(?:think|thinking|thought|reasoning|scratchpad)>", re.IGNORECASE)
_SPEECH = re.compile(
    r"(?:Here(?:'s|’s| is| are) (?:the|your|an?) (?:\w+ ){0,3}(?:code|file|version|content|result)"
    r"|(?:\W*)(?:Explanation|Summary|Overview|Description) of (?:the |my |these )?(?:changes|edits)"
    r"|(?:\W*)(?:Key |Main )?[Cc]hanges (?:made|I made)\b"
    r"|(?:Sure|Certainly|Of course|Okay)[,!.] "
    r"|I(?:'ve| have|’ve) (?:updated|made|added|changed|modified|applied|removed|replaced)\b"
    r"|(?:Let me know|I hope this|Note that I|In this (?:updated|modified|version))\b)"
)
# A trailing comment that says so much is a marker too.
_TRAILING_MARKER = re.compile(
    r"(?:\.{3}|…)\s*(?:(?:the )?rest of|existing|remaining|(?:same|unchanged) (?:code|as))",
    re.IGNORECASE,
)
_LEAST_MARKER = 8
# Lines that frame the parts of an edit, in the dialects that have such.
_FRAME = re.compile(
    r"\s*(?:(?:<{7}|>{7})(?: (?:SEARCH|REPLACE|ORIGINAL|UPDATED))?\s*$"
    r"|\*\*\* (?:(?:Begin|End) Patch\s*$|End of File\s*$|(?:Update|Add|Delete) File: )"
    r"|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|diff --git )"
)


def leaked_markers(given: GuardInput) -> Iterator[Finding]:
    """A placeholder, or a line that frames an edit, more often than the original has it."""
    own = [line.strip() for line in split_lines(given.snippet) if is_marker(line)]
    long = tuple({text for text in own if len(text) >= _LEAST_MARKER})

    def key(line: str) -> str:
        text = line.strip()
        if is_marker(line) or _TRAILING_MARKER.search(text) or _FRAME.match(line):
            return text
        return next((marker for marker in long if marker in text), "")

    rows = [row for row, text in _surplus(given, key) if text not in given.instruction]
    if rows:
        yield Finding(
            MARKER,
            "block",
            f"Line {rows[0] + 1} of the result is a placeholder for existing code or a mark of the "
            "edit's form, not code; try again, or give the snippet more context there.",
            _numbers(rows),
        )


def leaked_fences(given: GuardInput) -> Iterator[Finding]:
    """A code fence around the file or left open in it, or a tag or token of a prompt."""
    tags = [row for row, text in _surplus(given, _found(_TAG)) if text not in _asked(given)]
    if tags:
        yield Finding(
            FENCE,
            "block",
            f"Line {tags[0] + 1} of the result has a tag of the conversation with the model in it; "
            "try again.",
            _numbers(tags),
        )
    asked = _asked_fences(given)
    # No program begins or ends with one, whatever the snippet did.
    never = frozenset[int]() if _is_text(given.language) else _edges(given)
    rows = [row for row, text in _surplus(given, _fence) if text not in asked or row in never]
    if rows and (level := _fence_level(given, rows)):
        yield Finding(
            FENCE,
            level,
            f"Line {rows[0] + 1} of the result is a code fence that the file didn't have; try "
            "again, or remove it.",
            _numbers(rows),
        )


def leaked_thinking(given: GuardInput) -> Iterator[Finding]:
    """The model's thoughts, by the tags around them."""
    rows = [row for row, text in _surplus(given, _found(_THOUGHT)) if text not in _asked(given)]
    if rows:
        yield Finding(
            THINKING,
            "block",
            f"The model's thoughts are in the result, at line {rows[0] + 1}; try again, or switch "
            "its thinking off.",
            _numbers(rows),
        )


def leaked_prose(given: GuardInput) -> Iterator[Finding]:
    """Words to the user before the file's first line or after its last."""
    asked = _asked(given)
    rows = [row for row, line in _ends(given) if _SPEECH.match(line) and line.strip() not in asked]
    if rows:
        level: Level = "warn" if _is_text(given.language) else "block"
        yield Finding(
            PROSE,
            level,
            f"Line {rows[0] + 1} of the result reads like the model's words to you, not like the "
            "file; try again, or remove them.",
            _numbers(rows),
        )


def _surplus(given: GuardInput, key: Key) -> list[tuple[int, str]]:
    """(row of the result, key) where more lines with a key came than went; "" is no key."""
    found = [(row, text) for row, line in given.added() if (text := key(line))]
    removed = Counter(key(line) for line in given.removed()) if found else Counter()
    surplus = []
    for row, text in found:
        if removed[text]:
            removed[text] -= 1
        else:
            surplus.append((row, text))
    return surplus


def _found(pattern: re.Pattern[str]) -> Key:
    def key(line: str) -> str:
        found = pattern.search(line)
        return found.group(0).strip() if found else ""

    return key


def _fence(line: str) -> str:
    return line.strip() if _FENCE_LINE.match(line) else ""


def _asked_fences(given: GuardInput) -> set[str]:
    """Fences in what the user wrote; outside of Markdown one without another is no text."""
    fences = [text for line in _asked(given).split("\n") if (text := _fence(line))]
    paired = all(sum(text[0] == sign for text in fences) % 2 == 0 for sign in "`~")
    return set(fences) if paired or is_markdown(given.language) else set()


def _fence_level(given: GuardInput, rows: Sequence[int]) -> Level | None:
    """Fences in pairs can be text, as in a docstring; prose in Markdown lives on them."""
    ends = _edges(given)
    single = len(rows) % 2 == 1
    if is_markdown(given.language):
        return "block" if single or ends.issubset(rows) else None
    return "block" if single or not ends.isdisjoint(rows) else "warn"


def _edges(given: GuardInput) -> frozenset[int]:
    """The result's first and last row that isn't blank."""
    filled = [row for row, line in enumerate(given.final) if line.strip()]
    return frozenset((*filled[:1], *filled[-1:]))


def _ends(given: GuardInput) -> Iterator[tuple[int, str]]:
    """The lines that edits at the very beginning or end of the original brought."""
    added = given.added()
    for edit in given.edits:
        lines = list(islice(added, len(edit.lines)))
        if edit.start == 0 or edit.end == len(given.original):
            yield from lines


def _is_text(language: str | None) -> bool:
    return is_markdown(language) or (language or "").lower() in _TEXTS


def _asked(given: GuardInput) -> str:
    """What the user wrote, without the fence people put around a snippet."""
    snippet = strip_fence(split_lines(given.snippet), given.original, given.language)
    return "\n".join((given.instruction, *snippet))


def _numbers(rows: Iterable[int]) -> tuple[int, ...]:
    return tuple(row + 1 for row in rows)
