"""Text to tokens and back: nothing lost, nothing special, no half characters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, decoders, normalizers, processors
from tokenizers import Tokenizer as Backend

from apply_server.errors import ModelUnavailable
from apply_server.tokens import HuggingFaceTokenizer, Tokenizer, WordTokenizer
from tests.engine.support import SPECIALS, byte_backend

TRICKY = "def f():\n\treturn 'é日🎉'\r\n\x0c\u2028\ufeff \u00a0x__y  12.5e-3\n\n\n    }\n"
texts = st.text(st.characters(exclude_categories=["Cs"]))
code = st.text(st.sampled_from(list("ab1_ \t\n\r.({`'é日🎉\u0301\u2028")))


def saved(folder: Path, change: Callable[[Backend], None] = lambda backend: None) -> Tokenizer:
    backend = byte_backend()
    change(backend)
    path = folder / "tokenizer.json"
    backend.save(str(path))
    return HuggingFaceTokenizer(path, "bytes")


@pytest.mark.parametrize(
    "careless",
    [
        normalizers.Lowercase(),
        normalizers.StripAccents(),
        normalizers.Replace(Regex(r" +"), " "),
        normalizers.Prepend(" "),
    ],
)
def test_a_tokenizer_that_changes_text_is_refused(tmp_path: Path, careless: object) -> None:
    def change(backend: Backend) -> None:
        backend.normalizer = careless

    with pytest.raises(ModelUnavailable, match="doesn't keep text as it is"):
        saved(tmp_path, change)


@pytest.fixture(scope="module")
def byte_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return saved(tmp_path_factory.mktemp("tokenizer"))


def decoded(tokenizer: Tokenizer, text: str) -> str:
    stream = tokenizer.stream()
    return "".join(stream.push(token) for token in tokenizer.encode(text))


@settings(deadline=None)
@given(text=texts | code)
def test_the_byte_tokenizer_gives_back_every_text(byte_tokenizer: Tokenizer, text: str) -> None:
    # A replacement character at the very end looks like half a character, hence the newline.
    assert decoded(byte_tokenizer, text + "\n") == text + "\n"


@settings(deadline=None)
@given(text=texts | code)
def test_the_word_tokenizer_gives_back_every_text(text: str) -> None:
    assert decoded(WordTokenizer(), text) == text


def test_the_word_tokenizer_splits_close_to_how_code_models_do() -> None:
    tokenizer = WordTokenizer()
    stream = tokenizer.stream()
    pieces = [stream.push(token) for token in tokenizer.encode("    x_y += f(a, 12)\n\n    b")]
    assert "|".join(pieces) == "    |x|_|y| |+=| f|(|a|,| |1|2|)|\n\n|    |b"


def test_words_have_the_same_numbers_at_every_call() -> None:
    tokenizer = WordTokenizer()
    first = tokenizer.encode("return total\n")
    tokenizer.encode("something else")
    assert tokenizer.encode("return total\n") == tokenizer.encode_markup("return total\n") == first


def test_no_piece_holds_half_a_character(byte_tokenizer: Tokenizer) -> None:
    stream = byte_tokenizer.stream()
    pieces = [stream.push(token) for token in byte_tokenizer.encode("aé日🎉b")]
    assert pieces == ["a", "", "é", "", "", "日", "", "", "", "🎉", "b"]


def test_streams_do_not_share_what_they_hold_back(byte_tokenizer: Tokenizer) -> None:
    half = byte_tokenizer.encode("é")[0]
    byte_tokenizer.stream().push(half)
    assert byte_tokenizer.stream().push(byte_tokenizer.encode("a")[0]) == "a"


@pytest.mark.parametrize("special", SPECIALS)
def test_a_special_token_in_a_file_is_text_and_in_a_template_is_special(
    byte_tokenizer: Tokenizer, special: str
) -> None:
    assert len(byte_tokenizer.encode(special)) == len(special)
    assert len(byte_tokenizer.encode_markup(special)) == 1
    assert decoded(byte_tokenizer, f"x{special}y") == f"x{special}y"


@pytest.mark.parametrize(
    "normalizer",
    [
        normalizers.NFC(),
        normalizers.NFKD(),
        normalizers.Sequence([normalizers.NFKC(), normalizers.Sequence([normalizers.NFD()])]),
    ],
    ids=["NFC", "NFKD", "nested"],
)
def test_code_points_are_kept_whatever_the_tokenizer_composes(
    tmp_path: Path, normalizer: normalizers.Normalizer
) -> None:
    tokenizer = saved(tmp_path, lambda backend: setattr(backend, "normalizer", normalizer))
    assert decoded(tokenizer, "e\u0301 \u00e9 \ufb01\n") == "e\u0301 \u00e9 \ufb01\n"


def test_a_normaliser_that_belongs_to_the_vocabulary_stays(tmp_path: Path) -> None:
    def space_marks(backend: Backend) -> None:
        mark = normalizers.Replace(" ", "\u2581")
        backend.normalizer = normalizers.Sequence([normalizers.NFC(), mark])
        unmark = decoders.Replace("\u2581", " ")
        backend.decoder = decoders.Sequence([decoders.ByteLevel(), unmark])

    tokenizer = saved(tmp_path, space_marks)
    assert tokenizer.encode("a b") == tokenizer.encode("a\u2581b")
    assert len(tokenizer.encode("e\u0301")) == 3


def test_a_saved_truncation_does_not_cut_a_file(tmp_path: Path) -> None:
    tokenizer = saved(tmp_path, lambda backend: backend.enable_truncation(8))
    assert len(tokenizer.encode("x" * 100)) == 100
    assert len(tokenizer.encode_markup("x" * 100)) == 100


def test_a_saved_padding_adds_nothing(tmp_path: Path) -> None:
    tokenizer = saved(tmp_path, lambda backend: backend.enable_padding(length=32))
    assert len(tokenizer.encode("abc")) == 3


def test_no_token_is_added_around_a_text(tmp_path: Path) -> None:
    def with_a_beginning(backend: Backend) -> None:
        backend.post_processor = processors.TemplateProcessing(
            single="<|im_start|> $A", special_tokens=[("<|im_start|>", 257)]
        )

    tokenizer = saved(tmp_path, with_a_beginning)
    assert len(tokenizer.encode("abc")) == len(tokenizer.encode_markup("abc")) == 3


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]", b"\xff", b'{"normalizer": {}}'])
def test_an_unreadable_tokenizer_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelUnavailable, match=r"tokenizer\.json"):
        HuggingFaceTokenizer(path, "broken")


def test_a_long_file_is_encoded_whole(byte_tokenizer: Tokenizer) -> None:
    assert decoded(byte_tokenizer, TRICKY * 50) == TRICKY * 50
