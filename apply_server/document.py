"""Bytes to text and back without losing one of them: encoding, BOM, and every line's own ending.

This module must not know where the bytes come from, what an edit is, or who asks for positions.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from apply_server.errors import Remedy, UnsupportedEncoding

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]

# UTF-32's little-endian BOM begins with UTF-16's, so it is looked for first.
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
BYTE_ORDER_MARK = "\ufeff"
_EOL = re.compile(r"(\r\n|\r|\n)")
# PEP 263's form (which is also Emacs' and Vim's), XML's and HTML's; in a comment or a tag only, as
# a program's `encoding=` says nothing about its own file.
_DECLARATION = re.compile(
    rb"""^\s*(?:#|//|/\*|--|;|%|"|<!--|<\?xml|<meta).*?(?:coding[:=]|charset=)\s*["']?([-\w.]+)""",
    re.MULTILINE,
)
_DECLARATION_LINES = 5
_NAME_IT = Remedy("encoding", ("cp1252",), "(or gb18030, shift_jis, …) says how to read it.")
_NAME_WIDE = Remedy("encoding", ("utf-16-le",), "(or utf-16-be, …) says how to read the latter.")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: `text` without its ending, `eol` one of "\\n", "\\r\\n", "\\r", "" (last only)."""

    text: str
    eol: str


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a document, both from 0; `character` counts code units of some encoding."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class Document:
    """A file's text (without its BOM) and all that is needed to write it back byte for byte.

    `lines` end at LF, CRLF and CR only; joined with their endings they are `text`. Only the last
    line may lack an ending, and then its text is not empty; an empty document has no lines.
    """

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    lines: tuple[Line, ...] = field(init=False, repr=False, compare=False)
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lines = split_lines(self.text)
        widths = (len(line.text) + len(line.eol) for line in lines)
        object.__setattr__(self, "lines", lines)
        object.__setattr__(self, "_starts", tuple(accumulate(widths, initial=0)))

    @classmethod
    def from_bytes(cls, data: bytes, encoding: str | None = None) -> Document:
        """Decode a file. Without `encoding`: by BOM, else UTF-8 (where it isn't
        pure ASCII), else as the file itself declares.

        Statistical detection is left out on purpose: on short source files it is a guess, and a
        wrong guess writes wrong bytes. Raises UnsupportedEncoding unless encoding the text again,
        line by line, gives exactly `data`, and for binary files.
        """
        codec = _detect(data) if encoding is None else _codec_name(encoding, data)
        text = _decode(data, codec)
        if "\0" in text:
            raise UnsupportedEncoding(
                "The file contains NUL characters, so it is binary, or in UTF-16 or UTF-32 without "
                "a byte order mark.",
                remedy=_NAME_WIDE,
            )
        bom = BYTE_ORDER_MARK.encode(codec) if text.startswith(BYTE_ORDER_MARK) else b""
        document = cls(text.removeprefix(BYTE_ORDER_MARK), codec, bom)
        if bom + _encode_lines(document.lines, codec) != data:
            raise UnsupportedEncoding(
                f"Reading the file as {codec} and writing it again would change its bytes.",
                remedy=_NAME_IT,
            )
        return document

    @classmethod
    def from_text(cls, text: str) -> Document:
        """An editor's buffer: the editor knows the file's encoding, so UTF-8 stands in for it."""
        return cls(text)

    def view(self) -> str:
        """What a model is shown: every ending as "\\n", the final newline there or not as it is."""
        return "".join(f"{line.text}\n" if line.eol else line.text for line in self.lines)

    def line_texts(self) -> tuple[str, ...]:
        """The lines without their endings."""
        return tuple(line.text for line in self.lines)

    def dominant_eol(self) -> str:
        """The commonest line ending, the earlier one of equals; "\\n" where there is none."""
        counts = Counter(line.eol for line in self.lines if line.eol)
        return max(counts, key=counts.__getitem__, default="\n")

    def encode(self, text: str) -> bytes:
        """`text` in this document's encoding, after its BOM if it has one.

        Line by line, so that an unchanged line gets its old bytes whatever stands around it.
        Raises UnsupportedEncoding naming the characters that the encoding lacks, and for NUL, as a
        file with it could not be read again.
        """
        if "\0" in text:
            raise UnsupportedEncoding(
                "The result has NUL characters, which text files don't. Nothing was changed; leave "
                "them out of the edit."
            )
        lines = split_lines(text)
        try:
            data = _encode_lines(lines, self.encoding)
            if data.decode(self.encoding) == text:  # some codecs write a look-alike instead
                return self.bom + data
        except UnicodeError:
            pass
        lacking = _unencodable(text, self.encoding)
        raise UnsupportedEncoding(
            f"The result has characters that {self.encoding} can't hold: {', '.join(lacking)}. "
            "Nothing was changed; convert the file to UTF-8 first, or leave them out of the edit.",
            {"characters": lacking},
        )

    def position(self, offset: int, encoding: PositionEncoding) -> Position:
        """The position of `text[offset]`; inside a line's ending it is the place before it.

        After a final line ending that is line `len(lines)`, character 0, as in LSP.
        """
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._starts, offset) - 1
        if line >= len(self.lines):
            return Position(line, 0) if self._ends_with_eol() else self._end_of_text(encoding)
        before = self.lines[line].text[: offset - self._starts[line]]
        return Position(line, _units(before, encoding))

    def offset(self, position: Position, encoding: PositionEncoding) -> int:
        """The index into `text` of a position.

        Clamped: a character index past the line's end is the place before its ending, one inside a
        character is that character's start, a line past the last one is the end of the text.
        """
        if position.line < 0:
            return 0
        if position.line >= len(self.lines):
            return len(self.text)
        text = self.lines[position.line].text
        return self._starts[position.line] + character_index(text, position.character, encoding)

    def _ends_with_eol(self) -> bool:
        return not self.lines or self.lines[-1].eol != ""

    def _end_of_text(self, encoding: PositionEncoding) -> Position:
        return Position(len(self.lines) - 1, _units(self.lines[-1].text, encoding))


def split_lines(text: str) -> tuple[Line, ...]:
    """Split at LF, CRLF and CR only (never at form feeds, U+0085 or U+2028)."""
    parts = _EOL.split(text)  # text, ending, text, ending, …, text
    lines = [Line(*pair) for pair in zip(parts[:-1:2], parts[1::2], strict=True)]
    return (*lines, Line(parts[-1], "")) if parts[-1] else tuple(lines)


def _detect(data: bytes) -> str:
    by_bom = _bom_encoding(data)
    if by_bom is not None:
        return by_bom
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return _declared_encoding(data) or "utf-8"
    # Pure ASCII fits both, and what an edit adds is read as the file says.
    declared = _declared_encoding(data) if data.isascii() else None
    return declared if declared and _holds_ascii(data, declared) else "utf-8"


def _holds_ascii(data: bytes, codec: str) -> bool:
    try:
        return data.decode(codec) == data.decode("ascii")
    except (LookupError, ValueError):
        return False


def _bom_encoding(data: bytes) -> str | None:
    return next((name for bom, name in _BOMS if data.startswith(bom)), None)


def _declared_encoding(data: bytes) -> str | None:
    """The encoding that the file's first lines name, if we know it: a statement, not a guess."""
    head = b"\n".join(data.splitlines()[:_DECLARATION_LINES])
    declared = _DECLARATION.search(head)
    try:
        return _codec_name(declared[1].decode("ascii"), data) if declared else None
    except UnsupportedEncoding:
        return None


def _codec_name(encoding: str, data: bytes) -> str:
    """The codec for a name a person wrote, byte order settled and the BOM left to us."""
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise UnsupportedEncoding(
            f"There is no encoding named {encoding!r}.", remedy=_NAME_IT
        ) from None
    if name == "utf-8-sig":
        return "utf-8"
    if name in ("utf-16", "utf-32"):
        by_bom = _bom_encoding(data) or ""
        return by_bom if by_bom.startswith(name) else f"{name}-le"
    return name


def _decode(data: bytes, codec: str) -> str:
    try:
        return data.decode(codec)
    except UnicodeDecodeError as error:
        reason = f"The file isn't valid {codec} (byte {error.start})."
    except (LookupError, ValueError):
        reason = f"{codec} can't decode this file."
    raise UnsupportedEncoding(reason, remedy=_NAME_IT)


def _encode_lines(lines: tuple[Line, ...], codec: str) -> bytes:
    return b"".join((line.text + line.eol).encode(codec) for line in lines)


def _unencodable(text: str, codec: str) -> list[str]:
    """The distinct characters that the codec lacks, as "'€' (U+20AC)"."""
    return [f"{c!r} (U+{ord(c):04X})" for c in dict.fromkeys(text) if not _encodable(c, codec)]


def _encodable(character: str, codec: str) -> bool:
    try:
        return character.encode(codec).decode(codec) == character
    except UnicodeError:
        return False


def _width(character: str, encoding: PositionEncoding) -> int:
    """Code units of one character; a lone surrogate from an editor is one UTF-16 unit."""
    code = ord(character)
    if encoding == "utf-32":
        return 1
    if encoding == "utf-16":
        return 1 + (code > 0xFFFF)
    return 1 + (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF)


def _units(text: str, encoding: PositionEncoding) -> int:
    if text.isascii():
        return len(text)
    return sum(_width(character, encoding) for character in text)


def character_index(text: str, units: int, encoding: PositionEncoding) -> int:
    """The index into one line's text of a place `units` code units in, clamped as in `offset`."""
    if text.isascii():
        return min(max(units, 0), len(text))
    ends = list(accumulate(_width(character, encoding) for character in text))
    return bisect_right(ends, max(units, 0))
