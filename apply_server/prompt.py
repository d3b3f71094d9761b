"""A request → the prompt's tokens, what to copy from, and where the answer ends.

The original comes first and the edit after it, so that the original's keys and values can be
computed before the edit is known. The answer is opened by us (an open code fence or tag), so no
prose comes first. Must not know models, drafts or files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from apply_server.chat_template import ChatTemplate
from apply_server.errors import InvalidRequest, Remedy
from apply_server.languages import is_markdown
from apply_server.tokens import TextStream, Tokenizer

_CODE_FENCE, _PROSE_FENCE = 3, 4
_MOST_BACKTICKS = 4
_BACKTICKS = re.compile(r"`+")
_TILDES = re.compile(r"~+")


@dataclass(frozen=True, slots=True)
class Task:
    """What a prompt says: all text, "\\n" endings, the file's text as the model is to see it.

    `merged` is the file that the snippet's merge predicts, where there is a merge.
    """

    name: str
    language: str
    original: str
    instruction: str
    snippet: str
    merged: str | None = None


@dataclass(frozen=True, slots=True)
class Wording:
    """A task in a profile's words. `file` and `edit` make up the user's message."""

    system: str
    file: str
    edit: str
    opening: str
    closing: str
    end: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Ready for a target.

    The first `ahead` tokens say only what the file tells: they can be computed before the edit is
    known. `source` holds the original's tokens as they would stand in the answer, `snippet` the
    snippet's and `merged` the predicted file's, all with the closing line's; drafts copy from them
    and from the `instruction`, which quotes what is new. `closing` and `end` make the stop rule.
    """

    tokens: tuple[int, ...]
    source: tuple[int, ...]
    snippet: tuple[int, ...]
    instruction: tuple[int, ...]
    merged: tuple[int, ...] | None
    closing: str
    end: re.Pattern[str]
    ahead: int = 0


def chat_wording(task: Task) -> Wording:
    """For instruction-tuned chat models: a code fence that isn't in the texts."""
    texts = (task.original, task.instruction, task.snippet)
    # An edit of prose may well bring the file its first code block, with a fence of three.
    fence = _fence(_PROSE_FENCE if is_markdown(task.language) else _CODE_FENCE, texts)
    return Wording(
        system=(
            "You are a careful programmer. You get a file and an edit, and you answer with the "
            "complete file after the edit, changing nothing that the edit does not ask for."
        ),
        file=f"File `{task.name}`:\n\n{fence}{task.language}\n{_block(task.original)}{fence}\n\n",
        edit=_chat_edit(task, fence),
        opening=f"{fence}{task.language}\n",
        closing=fence,
        end=re.compile(rf"^{fence}", re.MULTILINE),
    )


def apply_wording(task: Task) -> Wording:
    """For apply models in the style of Kortix' FastApply: <code> and <update> to <updated-code>."""
    texts = (task.original, task.snippet)
    if any("</updated-code>" in text for text in texts):
        raise InvalidRequest(
            "The file or snippet contains </updated-code>, which this model uses to end its "
            "answer.",
            remedy=Remedy("profile", ("chat",), "asks as chat models are asked."),
        )
    update = "\n".join(part for part in (task.instruction, task.snippet) if part)
    return Wording(
        system=(
            "You are a coding assistant that helps merge code updates, ensuring every "
            "modification is fully integrated."
        ),
        file=(
            "Merge all changes from the <update> snippet into the <code> below.\n"
            "- Preserve the code's structure, order, comments, and indentation exactly.\n"
            "- Output only the updated code, enclosed within <updated-code> and </updated-code> "
            "tags.\n"
            "- Do not include any additional text, explanations, placeholders, ellipses, or code "
            f"fences.\n\n<code>{task.original}</code>\n\n"
        ),
        edit=f"<update>{update}</update>\n\nProvide the complete updated code.",
        opening="<updated-code>",
        closing="</updated-code>",
        end=re.compile(r"</updated-code>"),
    )


PROFILES: dict[str, Callable[[Task], Wording]] = {"chat": chat_wording, "fastapply": apply_wording}


def build_prompt(task: Task, profile: str, tokenizer: Tokenizer, template: ChatTemplate) -> Prompt:
    """Word, render and tokenise a task. Raises InvalidRequest for an unknown profile."""
    if profile not in PROFILES:
        raise InvalidRequest(
            f"Unknown prompt profile {profile!r}. Choose one of {', '.join(PROFILES)}."
        )
    wording = PROFILES[profile](task)
    before, between = template.render(wording.system)
    file = tokenizer.encode_markup(before) + tokenizer.encode(wording.file)
    tokens = (
        file
        + tokenizer.encode(wording.edit)
        + tokenizer.encode_markup(between)
        + tokenizer.encode(wording.opening)
    )
    return Prompt(
        tokens,
        tokenizer.encode(answer_text(task.original, wording.closing)),
        tokenizer.encode(answer_text(task.snippet, wording.closing)),
        tokenizer.encode(task.instruction),
        None
        if task.merged is None
        else tokenizer.encode(answer_text(task.merged, wording.closing)),
        wording.closing,
        wording.end,
        len(file),
    )


def answer_text(text: str, closing: str) -> str:
    """The answer that leaves the file as `text`: its lines and the closing line."""
    return f"{_block(text)}{closing}"


@dataclass(slots=True)
class Answer:
    """Reads the answer token by token; the stop rule of a session.

    `closed` tells whether the closing came, which a complete answer always has.
    """

    stream: TextStream
    end: re.Pattern[str]
    eos: frozenset[int] = frozenset()
    closed: bool = False
    _lines: list[str] = field(default_factory=list, repr=False)
    _line: str = field(default="", repr=False)

    @property
    def text(self) -> str:
        """The file's new text so far, without the closing."""
        return "".join((*self._lines, self._line))

    def lines_from(self, first: int) -> Sequence[str]:
        """The lines so far from number `first` on; one that isn't complete only when closed."""
        rest = [self._line] if self.closed and self._line else []
        return self._lines[first:] + rest

    def ends(self, token: int) -> bool:
        """See StopRule.ends."""
        if token in self.eos:
            return True
        self._line += self.stream.push(token)
        # A closing may share its token with what stands before it, so all unfinished text counts.
        if found := self.end.search(self._line):
            self.closed = True
            self._line = self._line[: found.start()]
        *whole, self._line = self._line.split("\n")
        self._lines += (f"{line}\n" for line in whole)
        return self.closed


def _chat_edit(task: Task, fence: str) -> str:
    parts = []
    if task.snippet:
        parts.append(
            "Apply this update to the file. Comments such as `... existing code ...` in it stand "
            "for code of the file that stays as it is; write that code out.\n\n"
            f"{fence}{task.language}\n{_block(task.snippet)}{fence}\n\n"
        )
    if task.instruction:
        parts.append(f"Edit: {task.instruction.strip()}\n\n")
    if task.merged is not None:
        # Without it a small model drops code that the update leaves out, or copies its markers; a
        # diff or the changed hunks alone were no help to it (see the README's measurements).
        parts.append(
            "With the update in its place the file reads:\n\n"
            f"{fence}{task.language}\n{_block(task.merged)}{fence}\n\n"
        )
    parts.append(
        "Answer with the complete file after the edit. Change only what the edit says and add no "
        "comments of your own. Copy everything else exactly, comments and blank lines included."
    )
    return "".join(parts)


def _block(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _fence(least: int, texts: Sequence[str]) -> str:
    """A fence that no text holds: backticks, or tildes where it would take more than four.

    A small model closes a fence of five backticks with the four that it has just read.
    """
    backticks = _longer(least, _BACKTICKS, texts)
    if backticks <= _MOST_BACKTICKS:
        return "`" * backticks
    return "~" * _longer(_CODE_FENCE, _TILDES, texts)


def _longer(least: int, run: re.Pattern[str], texts: Sequence[str]) -> int:
    lengths = (len(found) for text in texts for found in run.findall(text))
    return max(least, 1 + max(lengths, default=0))
