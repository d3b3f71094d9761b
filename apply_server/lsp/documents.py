"""The client's documents: open ones as its buffers are, closed ones as the disk has them.

Open buffers beat the disk. Must not know jobs or messages.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from apply_server import edits
from apply_server.document import BYTE_ORDER_MARK, Document, PositionEncoding
from apply_server.errors import DocumentChanged, InvalidRequest, UnsupportedEncoding
from apply_server.files import check_writable, read_document
from apply_server.lsp.mirror import Mirror
from apply_server.lsp.protocol import Range
from apply_server.lsp.uris import DocumentUri


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A document's text at one moment. `version` is None for closed ones; `new`: not on disk.

    Some editors send a file's byte order mark with it. It is no part of the first line, so edits
    don't see it; the columns of that line count it.
    """

    uri: DocumentUri
    text: str
    version: int | None = None
    language: str | None = None
    new: bool = False

    @property
    def body(self) -> str:
        """The text without a byte order mark."""
        return self.text.removeprefix(BYTE_ORDER_MARK)

    def with_body(self, body: str) -> str:
        """The text with another body, its byte order mark kept."""
        return BYTE_ORDER_MARK + body if self.text.startswith(BYTE_ORDER_MARK) else body

    def replacements(self, body: str, encoding: PositionEncoding) -> tuple[edits.TextEdit, ...]:
        """What gives the text another body, in the editor's places."""
        return edits.replacements(Document.from_text(self.text), self.with_body(body), encoding)

    def document(self) -> Document:
        """The body as a document. Raises UnsupportedEncoding where no file could hold it."""
        try:
            self.text.encode()
        except UnicodeEncodeError:
            raise UnsupportedEncoding(
                f"{self.uri.name} has half of a surrogate pair, which is no character. "
                "Remove it, then run the edit again."
            ) from None
        return Document.from_text(self.body)


@dataclass(slots=True)
class OpenDocument:
    """An editor's buffer. `uri` as it was opened."""

    uri: DocumentUri
    language: str
    version: int
    mirror: Mirror

    def snapshot(self) -> Snapshot:
        """The buffer as it is now."""
        return Snapshot(self.uri, self.mirror.text, self.version, self.language or None)


@dataclass(slots=True)
class Documents:
    """All open documents, notebook cells among them. `encoding` is the negotiated one."""

    encoding: PositionEncoding = "utf-16"
    _open: dict[DocumentUri, OpenDocument] = field(default_factory=dict)
    _awaited: dict[DocumentUri, asyncio.Event] = field(default_factory=dict)

    def open(self, uri: DocumentUri, language: str, version: int, text: str) -> Snapshot:
        """The client opened it; opening again replaces it."""
        opened = self._open[uri] = OpenDocument(uri, language, version, Mirror(text))
        if uri in self._awaited:
            self._awaited[uri].set()
        return opened.snapshot()

    async def until_open(self, uri: DocumentUri, patience_s: float) -> None:
        """Wait until the client has opened it, or for that long. One may wait for a document."""
        if uri in self._open:
            return
        opened = self._awaited[uri] = asyncio.Event()
        try:
            async with asyncio.timeout(patience_s):
                await opened.wait()
        except TimeoutError:
            pass
        finally:
            del self._awaited[uri]

    def close(self, uri: DocumentUri) -> None:
        """From now on the disk has its text."""
        self._open.pop(uri, None)

    def find(self, uri: DocumentUri) -> OpenDocument | None:
        """The buffer, None where the document isn't open."""
        return self._open.get(uri)

    def change(
        self, uri: DocumentUri, version: int, changes: list[tuple[Range | None, str]]
    ) -> None:
        """Apply a client's changes in order; without a range it is the whole text.

        Raises InvalidRequest where the document isn't open.
        """
        opened = self._open.get(uri)
        if opened is None:
            raise InvalidRequest(f"{uri.text} was changed but never opened.")
        for place, text in changes:
            if place is None:
                opened.mirror = Mirror(text)
            else:
                opened.mirror.replace(place, text, self.encoding)
        opened.version = version

    def check_version(self, uri: DocumentUri, version: int | None) -> OpenDocument | None:
        """The buffer, if it is what the client sees. Raises DocumentChanged."""
        opened = self._open.get(uri)
        if opened is not None and version is not None and opened.version != version:
            raise changed(uri, {"version": opened.version, "requested": version})
        return opened


def changed(uri: DocumentUri, details: dict[str, object] | None = None) -> DocumentChanged:
    """The document isn't what the edit was computed for."""
    return DocumentChanged(
        f"{uri.name} changed since it was read. Nothing was changed; run the edit again.", details
    )


def read_closed(uri: DocumentUri, encoding: str) -> Snapshot:
    """A document that no editor has open; empty where its file is still to be made.

    `encoding` "auto" or a codec's name. Raises InvalidRequest, ReadOnly or UnsupportedEncoding.
    """
    path = uri.file
    if path is None:
        raise InvalidRequest(f"{uri.name} is not open in the editor, and it is no file.")
    if not path.exists():
        if not path.parent.is_dir():
            raise InvalidRequest(f"There is no folder {path.parent}. Check the path.")
        return Snapshot(uri, "", new=True)
    document, _ = read_document(path, None if encoding == "auto" else encoding)
    check_writable(path)
    return Snapshot(uri, document.text)
