"""The beginning of a GGUF file, written by the format's own library; damage is a coded error."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.errors import ModelUnavailable
from apply_server.models.gguf_header import GgufHeader, read_header


def write(path: Path, split_count: int = 0) -> Path:
    writer = GGUFWriter(path, "qwen2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(["a", "bc", "déjà"])
    writer.add_token_types([1, 1, 3])
    writer.add_bool("tokenizer.ggml.add_bos_token", False)
    writer.add_float64("x.f64", 0.5)
    writer.add_uint16("split.count", split_count)
    writer.add_tensor("a.weight", np.zeros((4, 6), dtype=np.float32))
    writer.add_tensor("b.weight", np.zeros(5, dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def test_scalars_are_read_and_arrays_skipped(gguf: Path) -> None:
    header = read_header(gguf)
    assert header.architecture == "qwen2"
    assert header.pre_tokenizer == "smollm"
    assert header.metadata["tokenizer.ggml.add_bos_token"] is False
    assert header.metadata["x.f64"] == 0.5
    assert header.metadata["tokenizer.ggml.tokens"] is None
    assert header.metadata["tokenizer.ggml.token_type"] is None


def test_the_weights_of_all_tensors_are_counted(gguf: Path) -> None:
    header = read_header(gguf)
    assert header.weights == 4 * 6 + 5
    assert header.dense_bytes == 58


def test_a_header_without_names_has_empty_ones() -> None:
    assert GgufHeader({}, 0).architecture == ""
    assert GgufHeader({}, 0).pre_tokenizer == ""


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "doesn't begin with GGUF"),
        (b"PK\x03\x04", "doesn't begin with GGUF"),
        (b"GGUF\x01\0\0\0" + bytes(16), "version 1 is not known"),
        (b"GGUF\x03\0\0\0", "unpack requires"),
    ],
)
def test_what_is_no_gguf_file_is_said(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelUnavailable, match=says):
        read_header(path)


def test_a_file_in_parts_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="one of 3 parts; join them"):
        read_header(write(tmp_path / "x-00001-of-00003.gguf", split_count=3))


def test_a_file_that_can_not_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="can't be read"):
        read_header(tmp_path / "absent.gguf")


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_damage_is_never_more_than_a_coded_error(gguf: Path, data: st.DataObject) -> None:
    content = bytearray(gguf.read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    damaged = gguf.with_name("damaged.gguf")
    damaged.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with suppress(ModelUnavailable):
        assert read_header(damaged).weights >= 0
