"""Documents' URIs: equal when they name the same document, and kept as the client wrote them.

Must not know what is done with a document.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from apply_server.errors import InvalidRequest, ReadOnly

# Documents that take edits. All other schemes are views of something else: a revision, a log, a
# class file, a page; writing to them fails late or not at all.
_WRITABLE = frozenset(
    {"file", "untitled", "vscode-notebook-cell", "vscode-remote", "vscode-userdata", "inmemory"}
)
_DRIVE = re.compile(r"^/([A-Za-z]):")


@dataclass(frozen=True, slots=True)
class DocumentUri:
    """`text` is the client's spelling, to be sent back; the parts are decoded and compared."""

    text: str = field(compare=False)
    scheme: str
    authority: str
    path: str
    query: str
    fragment: str

    @classmethod
    def parse(cls, text: str) -> DocumentUri:
        """Raises InvalidRequest for what is no URI. Drive letters have no case."""
        try:
            parts = urlsplit(text)
        except ValueError:
            parts = urlsplit("")
        if not parts.scheme:
            raise InvalidRequest(f"{text!r} is no document's URI.")
        path = _DRIVE.sub(lambda drive: f"/{drive[1].lower()}:", unquote(parts.path))
        authority = unquote(parts.netloc).lower()
        return cls(text, parts.scheme, authority, path, unquote(parts.query), parts.fragment)

    @property
    def name(self) -> str:
        """The file's name, or what stands for it."""
        return self.path.rpartition("/")[2] or self.path or self.scheme

    @property
    def file(self) -> Path | None:
        """The file that the document is, None where it is none (or has no name yet)."""
        if self.scheme != "file" or not self.path.strip("/"):
            return None
        if self.authority and self.authority != "localhost":
            return Path(f"//{self.authority}{self.path}")
        return Path(self.path[1:] if os.name == "nt" and _DRIVE.match(self.path) else self.path)

    def check_writable(self) -> None:
        """Raise ReadOnly for documents that no edit can be written to."""
        if self.scheme not in _WRITABLE:
            raise ReadOnly(
                f"{self.name} can't be edited: {self.scheme}: documents are read-only here. "
                "Open the file itself."
            )
