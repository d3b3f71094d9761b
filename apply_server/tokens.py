"""Text to tokens and back: the tokenizer protocol and its two implementations.

Must not know prompts, models or edits. File text is always tokenised with special tokens switched
off, so a literal `<|im_end|>` in a file is text like any other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from apply_server.errors import ModelUnavailable

_UNICODE_FORMS = frozenset({"NFC", "NFD", "NFKC", "NFKD"})

# What careless rules lose: a first letter without a space before it, case, runs of blanks, a
# decomposed accent, characters outside the basic plane; the end is plain so that nothing is held.
_PROBE = "Ab  c\t\n\n    d_e1é e\u0301 漢 😀 <s> end\n"


class TextStream(Protocol):
    """Tokens in, text out, never half a character."""

    def push(self, token: int) -> str:
        """The text that this token completes; "" while a character is still incomplete."""
        ...


class Tokenizer(Protocol):
    """What prompts and reports need of a tokenizer."""

    @property
    def name(self) -> str:
        """For reports: which tokenizer the counts belong to."""
        ...

    def encode(self, text: str) -> tuple[int, ...]:
        """Tokens of plain text; special tokens' spellings are text."""
        ...

    def encode_markup(self, text: str) -> tuple[int, ...]:
        """Tokens of a template's own text, in which special tokens mean what they say."""
        ...

    def stream(self) -> TextStream:
        """A fresh incremental decoder."""
        ...


class HuggingFaceTokenizer:
    """A `tokenizer.json`, read by the tokenizers library alone (no torch, no transformers)."""

    def __init__(self, path: Path, name: str) -> None:
        from tokenizers import Tokenizer as Backend

        try:
            rules = json.dumps(_lossless(json.loads(path.read_text("utf-8"))))
            self._plain = Backend.from_str(rules)
            self._markup = Backend.from_str(rules)
        except Exception as error:  # the library raises bare Exception
            raise ModelUnavailable(f"Could not read the tokenizer {path}: {error}") from error
        self.name = name
        self._plain.encode_special_tokens = True
        if self._round_trip(_PROBE) != _PROBE:
            raise ModelUnavailable(
                f"The tokenizer of {name} doesn't keep text as it is (spaces, case or accents are "
                "lost), so a copied line would change. Choose another model."
            )

    def encode(self, text: str) -> tuple[int, ...]:
        """See Tokenizer.encode."""
        return tuple(self._plain.encode(text, add_special_tokens=False).ids)

    def difference(self, other: HuggingFaceTokenizer) -> str:
        """The first token that has another number in `other`, as a sentence; "" where none has."""
        ours, theirs = (each._plain.get_vocab(with_added_tokens=True) for each in (self, other))
        differing = [token for token in {*ours, *theirs} if ours.get(token) != theirs.get(token)]
        if not differing:
            return ""
        token = min(differing)
        numbers = [vocabulary.get(token, "missing") for vocabulary in (ours, theirs)]
        return f"{token!r} is {numbers[0]} for {self.name} and {numbers[1]} for {other.name}"

    def _round_trip(self, text: str) -> str:
        stream = self.stream()
        return "".join(stream.push(token) for token in self.encode(text))

    def encode_markup(self, text: str) -> tuple[int, ...]:
        """See Tokenizer.encode_markup."""
        return tuple(self._markup.encode(text, add_special_tokens=False).ids)

    def stream(self) -> TextStream:
        """See Tokenizer.stream."""
        return _BackendStream(self._plain)


class WordTokenizer:
    """A built-in stand-in for measuring drafts before any model has been fetched.

    Pieces are words with the space before them, digits, punctuation and runs of space, close to how
    code models split; their numbers are handed out as they turn up.
    """

    name = "words"
    _PIECE = re.compile(r"[ ]?[^\W\d_]+|\d|_+|[^\S\n]+(?=\S)|\s*\n+|[^\S\n]+|[^\w\s]{1,3}")

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._pieces: list[str] = []

    def encode(self, text: str) -> tuple[int, ...]:
        """See Tokenizer.encode."""
        return tuple(self._id(piece) for piece in self._split(text))

    def encode_markup(self, text: str) -> tuple[int, ...]:
        """There are no special tokens here."""
        return self.encode(text)

    def stream(self) -> TextStream:
        """See Tokenizer.stream."""
        return _PieceStream(self._pieces)

    def _split(self, text: str) -> list[str]:
        pieces: list[str] = []
        at = 0
        for match in self._PIECE.finditer(text):
            pieces += text[at : match.start()]  # what no rule names goes in one by one
            pieces.append(match[0])
            at = match.end()
        return [*pieces, *text[at:]]

    def _id(self, piece: str) -> int:
        known = self._ids.get(piece)
        if known is None:
            known = self._ids[piece] = len(self._pieces)
            self._pieces.append(piece)
        return known


class _PieceStream:
    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces

    def push(self, token: int) -> str:
        return self._pieces[token]


class _BackendStream:
    def __init__(self, backend: Any) -> None:
        from tokenizers.decoders import DecodeStream

        self._backend = backend
        self._stream = DecodeStream(skip_special_tokens=False)

    def push(self, token: int) -> str:
        text: str | None = self._stream.step(self._backend, token)
        return text or ""


def _lossless(rules: dict[str, Any]) -> dict[str, Any]:
    """A tokenizer's rules without those that lose text: a copied line must come back as it was.

    Qwen's composes (NFC), so a decomposed accent in a file would change; others cut or fill up to
    the length they were trained with. Normalisers that belong to the vocabulary (SentencePiece's
    space marks) stay.
    """
    return rules | {
        "normalizer": _without_unicode_forms(rules.get("normalizer")),
        "truncation": None,
        "padding": None,
    }


def _without_unicode_forms(normalizer: dict[str, Any] | None) -> dict[str, Any] | None:
    if normalizer is None or normalizer["type"] in _UNICODE_FORMS:
        return None
    if normalizer["type"] != "Sequence":
        return normalizer
    kept = [part for part in map(_without_unicode_forms, normalizer["normalizers"]) if part]
    return normalizer | {"normalizers": kept}
