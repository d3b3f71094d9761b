"""What a model is shown of a document, and how its answer becomes the document's text again.

Common indentation, blank lines at either end and trailing whitespace are taken off, because models
drop and rewrite them; putting them back is exact. This module must not know about prompts, tokens
or line endings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Prefix

from apply_server.document import Document, split_lines
from apply_server.line_diff import LineEdit, line_edits

_BLANKS = " \t"


@dataclass(frozen=True, slots=True)
class ModelView:
    """`lines` are the document's lines from `first` on, without `indentation` and trailing blanks.

    The blank lines before and after them are the document's own business: an answer can neither
    remove nor add any there.
    """

    lines: tuple[str, ...]
    first: int
    indentation: str
    document: Document

    @classmethod
    def of(cls, document: Document) -> ModelView:
        texts = [text.rstrip(_BLANKS) for text in document.line_texts()]
        filled = [number for number, text in enumerate(texts) if text]
        first, end = (filled[0], filled[-1] + 1) if filled else (len(texts), len(texts))
        indentation = _common_indentation([texts[number] for number in filled])
        lines = tuple(text.removeprefix(indentation) for text in texts[first:end])
        return cls(lines, first, indentation, document)

    @property
    def text(self) -> str:
        """The lines with "\\n" between them, and at the end if the document's last line has one."""
        return "\n".join(self.lines) + ("\n" if self.lines and self._final_newline() else "")

    def answer(self, lines: Sequence[str]) -> str:
        """How a model that sees this view would write a document of `lines`."""
        own = set(self.document.line_texts())
        shown = [line.rstrip(_BLANKS) if line in own else line for line in lines]
        kept = _without_blank_ends([line.removeprefix(self.indentation) for line in shown])
        return "".join(f"{line}\n" for line in kept)

    def to_document(self, edit: LineEdit) -> LineEdit:
        """An edit of the view's lines as one of the document's.

        Lines get the indentation back, and trailing whitespace where they stand for as many others.
        """
        lines = [self.indentation + line if line.strip(_BLANKS) else "" for line in edit.lines]
        start, end = edit.start + self.first, edit.end + self.first
        replaced = [line.text for line in self.document.lines[start:end]]
        return LineEdit(start, end, tuple(_with_blanks(lines, replaced)))

    def restore(self, model_text: str) -> str:
        """The document's view after the model rewrote `text` to `model_text`.

        Lines the model kept are the document's, whitespace and all, so `restore(text)` is
        `document.view()`.
        """
        answer = _without_blank_ends([line.text for line in split_lines(model_text)])
        originals = self.document.line_texts()
        result: list[str] = []
        at = 0
        for edit in map(self.to_document, line_edits(self.lines, answer)):
            result += (*originals[at : edit.start], *edit.lines)
            at = edit.end
        result += originals[at:]
        ended = self._final_newline() if originals else model_text.endswith(("\n", "\r"))
        return "\n".join(result) + ("\n" if result and ended else "")

    def _final_newline(self) -> bool:
        return bool(self.document.lines) and self.document.lines[-1].eol != ""


def _with_blanks(lines: Sequence[str], replaced: Sequence[str]) -> Sequence[str]:
    """Lines that stand for as many others keep the trailing whitespace that the model never saw."""
    if len(lines) != len(replaced):
        return lines
    return [
        line if line.endswith(tuple(_BLANKS)) else line + old[len(old.rstrip(_BLANKS)) :]
        for line, old in zip(lines, replaced, strict=True)
    ]


def _common_indentation(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    least, greatest = min(lines), max(lines)  # what these two share, all share
    shared = least[: Prefix.similarity(least, greatest)]
    return shared[: len(shared) - len(shared.lstrip(_BLANKS))]


def _without_blank_ends(lines: Sequence[str]) -> Sequence[str]:
    filled = [number for number, line in enumerate(lines) if line.strip(_BLANKS)]
    return lines[filled[0] : filled[-1] + 1] if filled else ()
