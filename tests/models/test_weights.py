"""The two known models themselves, fetched and converted on first use."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from apply_server.models import DEFAULT_MODEL, ModelFiles, Report, resolve
from tests.models.test_convert import TRICKY

CODE = Path(__file__).read_text("utf-8")


@dataclass(frozen=True)
class Expected:
    name: str
    model_type: str
    context: int
    ends: list[int]
    special: dict[str, int]
    ids: dict[str, list[int]]
    bytes_in_memory: int


QWEN = Expected(
    name=DEFAULT_MODEL,
    model_type="qwen2",
    context=32768,
    ends=[151645, 151643],
    special={"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645},
    ids={"Hello, world!": [9707, 11, 1879, 0], "1234": [16, 17, 18, 19]},
    bytes_in_memory=3_087_428_608,
)
SMOLLM = Expected(
    name="smollm2-135m-instruct",
    model_type="llama",
    context=8192,
    ends=[2, 0],
    special={"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2},
    ids={"Hello, world!": [19556, 28, 905, 17], "1234": [33, 34, 35, 36]},
    bytes_in_memory=269_030_016,
)
MODELS = [
    pytest.param(SMOLLM, marks=pytest.mark.weights, id="smollm2"),
    pytest.param(QWEN, marks=pytest.mark.model, id="qwen"),
]


def files_of(expected: Expected) -> ModelFiles:
    return resolve(expected.name, Report())


def read(files: ModelFiles, name: str) -> dict[str, Any]:
    return dict(json.loads((files.folder / name).read_text("utf-8")))


@pytest.mark.parametrize("expected", MODELS)
def test_the_configuration_is_the_models_own(expected: Expected) -> None:
    files = files_of(expected)
    config = read(files, "config.json")
    assert config["model_type"] == expected.model_type
    assert config["max_position_embeddings"] == expected.context
    assert config["tie_word_embeddings"] is True
    assert read(files, "generation_config.json")["eos_token_id"] == expected.ends
    assert files.entry is not None
    assert files.profile == files.entry.profile == "chat"


@pytest.mark.parametrize("expected", MODELS)
def test_the_tokens_are_the_models_own(expected: Expected) -> None:
    tokenizer = Tokenizer.from_file(str(files_of(expected).folder / "tokenizer.json"))
    assert {text: tokenizer.token_to_id(text) for text in expected.special} == expected.special
    for text, number in expected.special.items():
        assert tokenizer.encode(text).ids == [number]
    for text, ids in expected.ids.items():
        assert tokenizer.encode(text).ids == ids
    tokenizer.encode_special_tokens = True
    for text in [*TRICKY, CODE, "e\u0301"]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == text
        assert not set(ids) & set(expected.special.values())


@pytest.mark.parametrize("expected", MODELS)
def test_the_weights_load_without_a_conversion_and_fill_the_model(expected: Expected) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model, info = AutoModelForCausalLM.from_pretrained(
        files_of(expected).folder, output_loading_info=True
    )
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert model.dtype == torch.bfloat16
    size = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    assert size == expected.bytes_in_memory


@pytest.mark.model
def test_qwen_text_gets_the_ids_of_the_official_tokenizer() -> None:
    from transformers import Qwen2Tokenizer

    tokenizer = Tokenizer.from_file(str(files_of(QWEN).folder / "tokenizer.json"))
    model = json.loads(tokenizer.to_str())["model"]
    official = Qwen2Tokenizer(
        vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]]
    ).backend_tokenizer
    tokenizer.encode_special_tokens = official.encode_special_tokens = True
    for text in [*TRICKY, CODE]:
        ours = tokenizer.encode(text, add_special_tokens=False).ids
        assert ours == official.encode(text, add_special_tokens=False).ids
