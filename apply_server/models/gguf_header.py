"""The beginning of a GGUF file: what the model is and how large its weights are.

The `gguf` package's reader takes half a minute for a large vocabulary, because it makes an array
of every string; here the vocabulary is skipped. The format is described in ggml's docs/gguf.md.
This module must not know what a conversion does.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import BinaryIO

from apply_server.errors import ModelUnavailable

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?"}
_SCALARS |= {10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
# Far above any real file; a damaged one must not make us reserve what its bytes happen to say.
_LONGEST_STRING = 1 << 24
_MOST_DIMENSIONS = 8

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """`metadata` without its arrays, and the number of weights in all tensors together."""

    metadata: Mapping[str, Value]
    weights: int

    @property
    def architecture(self) -> str:
        """ggml's name of the model family, for example "qwen2"."""
        return str(self.metadata.get("general.architecture", ""))

    @property
    def pre_tokenizer(self) -> str:
        """ggml's name of the rule that cuts text into words before the merges."""
        return str(self.metadata.get("tokenizer.ggml.pre", ""))

    @property
    def dense_bytes(self) -> int:
        """What the weights take in a 16-bit type."""
        return 2 * self.weights


def read_header(path: Path) -> GgufHeader:
    """The header of the GGUF file at `path`.

    Raises:
        ModelUnavailable: it can't be read, is no GGUF file, or is one part of several.
    """
    try:
        with path.open("rb") as stream:
            header = _read(stream)
    except (struct.error, KeyError, ValueError, OverflowError) as error:
        raise ModelUnavailable(f"{path} is not a complete GGUF file: {error}.") from error
    except OSError as error:
        raise ModelUnavailable(f"{path} can't be read: {error.strerror}.") from error
    parts = header.metadata.get("split.count", 0)
    if isinstance(parts, int) and parts > 1:
        raise ModelUnavailable(
            f"{path} is one of {parts} parts; join them with llama.cpp's gguf-split."
        )
    return header


def _read(stream: BinaryIO) -> GgufHeader:
    if stream.read(4) != b"GGUF":
        raise ValueError("it doesn't begin with GGUF")
    version, tensors, pairs = _unpack(stream, "IQQ")
    if version not in (2, 3):
        raise ValueError(f"format version {version} is not known")
    metadata = {}
    for _ in range(pairs):
        key = _string(stream)
        (kind,) = _unpack(stream, "I")
        metadata[key] = _value(stream, kind)
    return GgufHeader(metadata, sum(_tensor_weights(stream) for _ in range(tensors)))


def _unpack(stream: BinaryIO, layout: str) -> tuple[int, ...]:
    layout = "<" + layout
    return struct.unpack(layout, stream.read(struct.calcsize(layout)))


def _string(stream: BinaryIO) -> str:
    (length,) = _unpack(stream, "Q")
    if length > _LONGEST_STRING:
        raise ValueError("a string is too long")
    return stream.read(length).decode("utf-8")


def _value(stream: BinaryIO, kind: int) -> Value:
    if kind == _STRING:
        return _string(stream)
    if kind != _ARRAY:
        return _unpack(stream, _SCALARS[kind])[0]
    element, count = _unpack(stream, "IQ")
    if element == _STRING:
        for _ in range(count):
            stream.seek(_unpack(stream, "Q")[0], 1)
    else:
        stream.seek(count * struct.calcsize(_SCALARS[element]), 1)
    return None


def _tensor_weights(stream: BinaryIO) -> int:
    _string(stream)
    (dimensions,) = _unpack(stream, "I")
    if dimensions > _MOST_DIMENSIONS:
        raise ValueError("a tensor has too many dimensions")
    shape = _unpack(stream, f"{dimensions}Q")
    _unpack(stream, "IQ")  # its type and its offset
    return prod(shape)
