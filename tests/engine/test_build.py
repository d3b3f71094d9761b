"""Names → parts: refused before anything is fetched, loaded last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apply_server import models
from apply_server.config import EngineConfig
from apply_server.decode.sampling import Sampling
from apply_server.engine import build
from apply_server.errors import InvalidRequest, ModelUnavailable
from apply_server.models import Report
from apply_server.target.transformers_model import TransformersTarget
from apply_server.tokens import HuggingFaceTokenizer, WordTokenizer
from tests.engine.support import CHATML, byte_backend


def model_folder(folder: Path, *left_out: str) -> Path:
    """A folder with all but the weights' values: enough for everything before them."""
    (folder / "config.json").write_text('{"eos_token_id": 7}')
    (folder / "model.safetensors").write_bytes(b"")
    (folder / "chat_template.jinja").write_text(CHATML, "utf-8")
    byte_backend().save(str(folder / "tokenizer.json"))
    for name in left_out:
        (folder / name).unlink()
    return folder


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"generation_config.json": {"eos_token_id": [2, 0]}}, {0, 2}),
        ({"generation_config.json": {"eos_token_id": 0}}, {0}),
        ({"generation_config.json": {}, "config.json": {"eos_token_id": 5}}, {5}),
        ({"generation_config.json": {"eos_token_id": 3}, "config.json": {"eos_token_id": 5}}, {3}),
        ({"config.json": {"eos_token_id": None}}, set()),
        ({}, set()),
    ],
)
def test_the_ends_of_sequence_are_the_models_own(
    tmp_path: Path, files: dict[str, object], expected: set[int]
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    assert build.end_of_sequence(tmp_path) == expected


@pytest.mark.parametrize(
    ("setting", "known"),
    [
        ({"profile": "morph"}, "chat, fastapply"),
        ({"dtype": "int3"}, "auto, float32, bfloat16"),
        ({"proposer": "lookup"}, "auto, suffix"),
        ({"cost": "cheap"}, "cheap"),
    ],
)
def test_unknown_names_are_refused_before_anything_is_fetched(
    monkeypatch: pytest.MonkeyPatch, setting: dict[str, str], known: str
) -> None:
    monkeypatch.setattr(models, "resolve", lambda *_: pytest.fail("fetched"))
    config = EngineConfig("m", **setting)  # type: ignore[arg-type]
    for make in (build.build_engine, build.load_model):
        with pytest.raises(InvalidRequest, match=known):
            make(config, Report())


@pytest.mark.parametrize("limit", [0, -5])
def test_a_limit_that_leaves_no_token_makes_no_configuration(limit: int) -> None:
    with pytest.raises(InvalidRequest, match=f"not {limit}"):
        EngineConfig("m", max_new=limit)


@pytest.mark.parametrize(
    ("left_out", "reason"),
    [("tokenizer.json", "tokenizer"), ("chat_template.jinja", "no chat template")],
)
def test_what_a_model_lacks_is_found_before_its_weights_are_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, left_out: str, reason: str
) -> None:
    monkeypatch.setattr(TransformersTarget, "load", lambda *_: pytest.fail("loaded"))
    config = EngineConfig(str(model_folder(tmp_path, left_out)))
    with pytest.raises(ModelUnavailable, match=reason):
        build.load_model(config, Report())


@pytest.mark.parametrize("error", [RuntimeError, AssertionError])
def test_a_device_that_is_not_there_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: type[Exception]
) -> None:
    def load(*_: object) -> None:
        raise error("Torch not compiled with CUDA enabled")

    monkeypatch.setattr(TransformersTarget, "load", load)
    config = EngineConfig(str(model_folder(tmp_path)), device="cuda")
    with pytest.raises(ModelUnavailable, match=r"'cuda'.*not compiled"):
        build.load_model(config, Report())


def test_the_scripted_tokenizer_is_the_default_models_once_that_is_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(models, "tokenizer_path", lambda name: None)
    assert isinstance(build.choose_tokenizer(None), WordTokenizer)
    path = model_folder(tmp_path) / "tokenizer.json"
    monkeypatch.setattr(models, "tokenizer_path", lambda name: path)
    chosen = build.choose_tokenizer(None)
    assert isinstance(chosen, HuggingFaceTokenizer)
    assert chosen.name == models.DEFAULT_MODEL
    assert build.choose_tokenizer("words").name == "words"


def test_a_named_tokenizer_that_is_not_here_is_never_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(models, "tokenizer_path", lambda name: None)
    with pytest.raises(ModelUnavailable, match="models pull some-model"):
        build.choose_tokenizer("some-model")


def test_a_scripted_target_takes_no_setting_that_it_would_drop() -> None:
    build.check_scripted(EngineConfig("m", sampling=Sampling(seed=5)))
    for sampling in (Sampling(temperature=0.5), Sampling(repetition_penalty=1.1)):
        with pytest.raises(InvalidRequest, match="no temperature and no penalty"):
            build.check_scripted(EngineConfig("m", sampling=sampling))
