"""What comes out of a conversion: the weights, the tokens and the ends of the original model."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from apply_server.errors import ModelUnavailable
from apply_server.models.conversion import convert_in_child
from tests.models.tiny_gguf import (
    CHAT_TEMPLATE,
    CONTROL,
    Vocabulary,
    tiny_causal_lm,
    write_gguf,
)

FAMILIES = {"llama": "smollm", "qwen2": "qwen2"}
TRICKY = [
    "x = 12345\n\n\n    return  7\n",
    "a\n \n  \n\tb\r\n\r\n  c   \n",
    "it's WE'LL don'T 3.14e10 ½ ٣٤ ४",
    "if (a&&b){return!c;}//--->>>\n\n\n\n",
    "naïve café 日本語 🎉👩‍👩‍👧 \u200b\ufeff",
    "<|im_end|> <|endoftext|> <|im_start|>user",
    "   ",
    "\n\n1\n\n22\n   333",
    "",
]


@dataclass(frozen=True)
class Converted:
    folder: Path
    original: Any
    vocabulary: Vocabulary

    @property
    def tokenizer(self) -> Tokenizer:
        tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        tokenizer.encode_special_tokens = True  # as file text is read: no token is special in it
        return tokenizer

    def json(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.folder / name).read_text("utf-8")))


def convert_tiny(root: Path, family: str, pre: str, **options: Any) -> Converted:
    from apply_server.models.convert import convert

    vocabulary = Vocabulary.train()
    original = tiny_causal_lm(family, vocabulary)
    gguf = write_gguf(root / "tiny.gguf", original, vocabulary, pre=pre, family=family, **options)
    folder = root / "dense"
    folder.mkdir()
    convert(gguf, folder)
    return Converted(folder, original, vocabulary)


@pytest.fixture(params=FAMILIES, scope="module")
def converted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Converted:
    return convert_tiny(
        tmp_path_factory.mktemp(request.param), request.param, FAMILIES[request.param]
    )


@pytest.fixture(scope="module")
def smollm(tmp_path_factory: pytest.TempPathFactory) -> Converted:
    return convert_tiny(tmp_path_factory.mktemp("smollm"), "llama", "smollm")


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Converted:
    return convert_tiny(tmp_path_factory.mktemp("qwen"), "qwen2", "qwen2")


# --- weights ---


def test_the_weights_are_the_originals_in_bf16(converted: Converted) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(converted.folder)
    assert model.dtype == torch.bfloat16
    weights = model.state_dict()
    for name, weight in converted.original.state_dict().items():
        assert torch.equal(weights[name], weight.to(torch.bfloat16)), name
    assert model.config.rope_parameters["rope_theta"] == pytest.approx(54321.0)
    assert model.config.max_position_embeddings == 512


def test_the_same_text_gets_the_same_scores(converted: Converted) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(converted.folder, dtype=torch.float32)
    original = copy.deepcopy(converted.original)
    for parameter in original.parameters():
        parameter.data = parameter.data.to(torch.bfloat16).to(torch.float32)
    ids = torch.tensor([converted.tokenizer.encode(TRICKY[0]).ids])
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, original(ids).logits)


def test_weights_are_safetensors_and_nothing_else_is_needed(converted: Converted) -> None:
    names = {path.name for path in converted.folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"} <= names
    assert not {name for name in names if name.endswith((".bin", ".gguf"))}


@pytest.mark.parametrize("noise", [0.02, None])
def test_two_roundings_of_one_matrix_are_tied_and_two_matrices_are_not(
    tmp_path: Path, noise: float | None
) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    vocabulary = Vocabulary.train()
    embedding = tiny_causal_lm("qwen2", vocabulary).get_input_embeddings().weight.detach()
    other = torch.randn(embedding.shape, generator=torch.Generator().manual_seed(1)) * 0.3
    output = other if noise is None else embedding + noise * other
    result = convert_tiny(tmp_path, "qwen2", "qwen2", output=output)
    model = AutoModelForCausalLM.from_pretrained(result.folder)
    assert model.config.tie_word_embeddings is (noise is not None)
    assert torch.equal(model.get_output_embeddings().weight, output.to(torch.bfloat16))
    kept = embedding if noise is None else output
    assert torch.equal(model.get_input_embeddings().weight, kept.to(torch.bfloat16))


# --- tokens ---


@pytest.mark.parametrize("text", [*TRICKY, "e\u0301 A\u030a 한글"])
def test_text_comes_back_as_it_was(converted: Converted, text: str) -> None:
    ids = converted.tokenizer.encode(text, add_special_tokens=False).ids
    assert converted.tokenizer.decode(ids, skip_special_tokens=False) == text


@settings(deadline=None, max_examples=150)
@given(text=st.text(st.characters(exclude_categories=("Cs",)), max_size=60))
def test_any_text_comes_back_as_it_was(converted: Converted, text: str) -> None:
    ids = converted.tokenizer.encode(text, add_special_tokens=False).ids
    assert converted.tokenizer.decode(ids, skip_special_tokens=False) == text


GPT2 = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
DIGITS_FIRST = regex.compile(r"\p{N}|\P{N}+")
CODE_LIKE = st.text(st.sampled_from("ab1 2\n\r\t's.,(日½é"), max_size=30)


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    assert tokenizer.pre_tokenizer is not None
    spans = tokenizer.pre_tokenizer.pre_tokenize_str(text)
    return [text[start:end] for _, (start, end) in spans]


@settings(deadline=None, max_examples=200)
@given(text=CODE_LIKE)
def test_smollm2_takes_digits_out_first_and_then_cuts_as_gpt2_does(
    smollm: Converted, text: str
) -> None:
    expected = [piece for part in DIGITS_FIRST.findall(text) for piece in GPT2.findall(part)]
    assert pieces(smollm.tokenizer, text) == expected


def test_where_the_digit_rule_shows(smollm: Converted) -> None:
    assert pieces(smollm.tokenizer, "a = 120\n    7") == [
        *["a", " =", " ", "1", "2", "0", "\n    ", "7"]
    ]


def official_qwen2(vocabulary: Vocabulary) -> Tokenizer:
    from transformers import Qwen2Tokenizer

    tokenizer = Qwen2Tokenizer(vocab=vocabulary.ids, merges=vocabulary.merges).backend_tokenizer
    tokenizer.encode_special_tokens = True
    return tokenizer


@settings(deadline=None, max_examples=200)
@given(text=CODE_LIKE)
def test_qwen2_text_gets_the_ids_of_the_official_tokenizer(qwen: Converted, text: str) -> None:
    expected = official_qwen2(qwen.vocabulary).encode(text, add_special_tokens=False).ids
    assert qwen.tokenizer.encode(text, add_special_tokens=False).ids == expected


@pytest.mark.parametrize("text", TRICKY)
def test_qwen2_cuts_tricky_text_as_the_official_tokenizer_does(qwen: Converted, text: str) -> None:
    assert pieces(qwen.tokenizer, text) == pieces(official_qwen2(qwen.vocabulary), text)


def test_composed_characters_are_left_alone_though_qwen2_would_compose_them(
    qwen: Converted,
) -> None:
    decomposed = "cafe\u0301"
    official = official_qwen2(qwen.vocabulary)
    assert official.decode(official.encode(decomposed).ids) == "caf\u00e9"
    assert qwen.tokenizer.decode(qwen.tokenizer.encode(decomposed).ids) == decomposed


def test_a_rule_that_is_not_known_is_noted(tmp_path: Path) -> None:
    noted = convert_tiny(tmp_path, "llama", "a-rule-of-the-future")
    assert noted.json("conversion.json")["notes"] == [
        "The pre-tokenizer of tiny.gguf is not known here; its text may be cut into other tokens "
        "than the model was trained on, which costs quality."
    ]


def test_known_rules_are_not_noted(converted: Converted) -> None:
    assert converted.json("conversion.json") == {"notes": []}


# --- special tokens and ends ---


def test_control_tokens_keep_their_ids_and_are_special(converted: Converted) -> None:
    added = converted.tokenizer.get_added_tokens_decoder()
    assert {number: (t.content, t.special) for number, t in added.items()} == {
        number: (text, True) for number, text in enumerate(CONTROL)
    }
    reading = Tokenizer.from_file(str(converted.folder / "tokenizer.json"))
    assert reading.encode("<|im_end|>").ids == [2]
    assert 2 not in converted.tokenizer.encode("<|im_end|>").ids


def test_an_answer_ends_at_the_turns_end_and_at_the_texts_end(converted: Converted) -> None:
    assert converted.json("generation_config.json")["eos_token_id"] == [2, 0]


def test_the_chat_template_is_the_files_own(converted: Converted) -> None:
    assert (converted.folder / "chat_template.jinja").read_text("utf-8") == CHAT_TEMPLATE


def test_nothing_is_put_before_or_after_a_text(converted: Converted) -> None:
    tokenizer = converted.tokenizer
    assert tokenizer.encode("a").ids == tokenizer.encode("a", add_special_tokens=False).ids


# --- as a process of its own ---


def test_a_conversion_in_a_child_tells_the_bytes_written(tmp_path: Path) -> None:
    vocabulary = Vocabulary.train()
    original = tiny_causal_lm("qwen2", vocabulary)
    gguf = write_gguf(tmp_path / "tiny.gguf", original, vocabulary, family="qwen2", pre="qwen2")
    folder = tmp_path / "dense"
    folder.mkdir()
    assert convert_in_child(gguf, folder, lambda count: None) == []
    assert (folder / "model.safetensors").is_file()


def test_a_family_that_transformers_can_not_read_is_a_coded_error(tmp_path: Path) -> None:
    vocabulary = Vocabulary.train()
    original = tiny_causal_lm("qwen2", vocabulary)
    gguf = write_gguf(tmp_path / "tiny.gguf", original, vocabulary, family="clip", pre="qwen2")
    folder = tmp_path / "dense"
    folder.mkdir()
    with pytest.raises(ModelUnavailable, match=r"tiny\.gguf could not be converted: .*clip"):
        convert_in_child(gguf, folder, lambda count: None)
