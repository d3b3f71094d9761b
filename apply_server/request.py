"""What a user asks for, as one value. Must not know how it will be done."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from apply_server.document import BYTE_ORDER_MARK, Document, split_lines
from apply_server.errors import InvalidRequest
from apply_server.languages import language_of

# At the beginning of a line, or after a diff's sign.
_LINE_START = r"^([ +-]?)"
_QUOTED_BOM = re.compile(rf"{_LINE_START}{BYTE_ORDER_MARK}", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EditRequest:
    """An edit of one document: an instruction, a snippet, or both.

    `name` is the file's name as the user knows it (for the prompt and for messages), `language` the
    editor's language id or a fixture's; None means that the name tells. `selection` are the lines
    (first, end exclusive) that may change; None is the whole document. A byte order mark is the
    file's, not its first line's: a snippet that quotes it, or begins with its own, loses it. Raises
    InvalidRequest where there is nothing to do.
    """

    document: Document
    name: str
    instruction: str = ""
    snippet: str = ""
    language: str | None = None
    selection: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not self.instruction.strip() and not self.snippet.strip():
            raise InvalidRequest(
                "There is nothing to apply: give an instruction, a snippet, or both."
            )
        if self.selection and not self.document.lines[slice(*self.selection)]:
            raise InvalidRequest("The selection is empty. Select the lines to edit, or nothing.")
        object.__setattr__(self, "snippet", self._without_byte_order_marks())

    def _without_byte_order_marks(self) -> str:
        """A snippet that quotes the first line with a mark may write it with one as well."""
        lines = self.document.lines
        if any(line.text.startswith(BYTE_ORDER_MARK) for line in lines):
            return self.snippet
        first = re.escape(lines[0].text) if lines else ""
        quoted = re.compile(rf"{_LINE_START}{BYTE_ORDER_MARK}{first}\r?$", re.MULTILINE)
        if first and quoted.search(self.snippet):
            return _QUOTED_BOM.sub(r"\1", self.snippet)
        return self.snippet.removeprefix(BYTE_ORDER_MARK)

    def part(self) -> EditRequest:
        """The same edit of the selected lines as a document of their own."""
        if self.selection is None:
            return self
        lines = self.document.lines[slice(*self.selection)]
        text = "".join(line.text + line.eol for line in lines)
        return replace(self, document=Document.from_text(text), selection=None)

    @property
    def language_id(self) -> str:
        """The language given, else the one the name tells; "" where neither does."""
        return self.language or language_of(self.name)

    @property
    def snippet_view(self) -> str:
        """The snippet as models and guards see it: lines joined with "\\n", none at the end."""
        return "\n".join(line.text for line in split_lines(self.snippet))
