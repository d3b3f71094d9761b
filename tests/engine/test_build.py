"""Names → parts: refused before anything is fetched, loaded last."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from apply_server import models
from apply_server.config import EngineConfig
from apply_server.decode.loop import decode, prefill
from apply_server.decode.sampling import Sampling
from apply_server.engine import build
from apply_server.errors import Cancelled, InvalidRequest, ModelUnavailable
from apply_server.models import Report
from apply_server.target.transformers_model import TransformersTarget
from apply_server.tokens import HuggingFaceTokenizer, WordTokenizer
from tests.engine.support import CHATML, byte_backend, request, save_model


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
        ({"proposer": "lookup"}, "auto, chain, suffix"),
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


def test_a_model_whose_output_matrix_has_another_name_loads_without_heads(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    backend = byte_backend()
    sizes = {"vocab_size": backend.get_vocab_size(), "n_embd": 32, "n_layer": 2, "n_head": 2}
    GPT2LMHeadModel(GPT2Config(**sizes, n_positions=512)).save_pretrained(tmp_path)
    backend.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "chat_template.jinja").write_text(CHATML, "utf-8")
    config = EngineConfig(str(tmp_path), dtype="float32", cost="rho=15")
    assert build.load_model(config, Report()).heads is None
    with pytest.raises(ModelUnavailable, match="no output matrix"):
        build.load_model(replace(config, heads="heads.safetensors"), Report())


def test_later_edits_of_a_file_compute_only_what_is_new(tmp_path: Path) -> None:
    config = EngineConfig(str(save_model(tmp_path)), dtype="float32", max_new=400, cost="rho=15")
    file = "value = 1\n" * 20
    asked = [request(file, "one"), request(file, "two"), request(f"{file}# end\n", "two")]

    def sessions(each: EngineConfig, ahead: bool = False) -> list[tuple[int, list[int]]]:
        model = build.load_model(each, Report())
        engine = build.model_engine(model, each)
        if ahead:
            read = list(engine.warm(asked[0].document, "file.py", "python", Event()))
            assert [event.done for event in read] == [128, 256, 384]
            assert 384 < read[-1].total < 384 + 128
        found = []
        for one in asked:
            prompt = engine.prompt(one)
            with engine.session(prompt, engine.answer(prompt), Event()) as session:
                for done in (prefill, decode):
                    for _ in done(session, model.target):
                        pass
                found.append((session.counters.cached_tokens, session.output))
        return found

    nothing, kept, ahead = (
        sessions(replace(config, prefix_cache=0)), sessions(config), sessions(config, ahead=True),
    )  # fmt: skip
    assert [cached for cached, _ in nothing] == [0, 0, 0]
    assert [cached for cached, _ in kept] == [0, 384, 384]
    assert [cached for cached, _ in ahead] == [384, 384, 384]
    assert [out for _, out in kept] == [out for _, out in ahead] == [out for _, out in nothing]


def test_computing_ahead_can_be_cancelled(tmp_path: Path) -> None:
    config = EngineConfig(str(save_model(tmp_path)), dtype="float32", cost="rho=15")
    engine = build.model_engine(build.load_model(config, Report()), config)
    cancel, document = Event(), request("value = 1\n" * 20, "x").document
    cancel.set()
    with pytest.raises(Cancelled):
        list(engine.warm(document, "file.py", "python", cancel))
    again = engine.warm(document, "file.py", "python", Event())
    assert [event.done for event in again] == [128, 256, 384], "the first chunk is known"


@pytest.mark.parametrize("limit", [0, -5])
def test_a_cache_below_nothing_makes_no_configuration_either(limit: int) -> None:
    with pytest.raises(InvalidRequest, match=f"{limit - 1} MiB"):
        EngineConfig("m", prefix_cache=limit - 1)


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


def drafting(folder: Path, draft: Path, **settings: object) -> EngineConfig:
    return EngineConfig(
        str(folder), "cpu", "float32", cost="rho=15", draft_model=str(draft), **settings
    )  # type: ignore[arg-type]


def test_a_draft_model_with_another_tokenizer_is_refused_with_the_first_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TransformersTarget, "load", lambda *_: pytest.fail("loaded"))
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        model_folder(tmp_path / name)
    rules = json.loads((tmp_path / "other" / "tokenizer.json").read_text("utf-8"))
    vocabulary = rules["model"]["vocab"]
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    (tmp_path / "other" / "tokenizer.json").write_text(json.dumps(rules), "utf-8")
    a, b = (byte_backend().token_to_id(token) for token in "ab")
    with pytest.raises(ModelUnavailable, match=f"tokenizers differ .'a' is {a} for .* and {b} for"):
        build.load_model(drafting(tmp_path / "one", tmp_path / "other"), Report())


def test_a_draft_model_drafts_where_it_is_named(tmp_path: Path) -> None:
    folder, smaller = (save_model(tmp_path / name) for name in ("model", "smaller"))
    asked = request("def f():\n    return 1\n", "rename f to g")
    outputs, sources = [], []
    config = drafting(folder, smaller, max_new=60)
    model = build.load_model(config, Report())
    for proposer in ("none", "auto", "model:sample"):
        engine = build.model_engine(model, replace(config, proposer=proposer))
        prompt = engine.prompt(asked)
        with engine.session(prompt, engine.answer(prompt), Event()) as session:
            for _ in (*prefill(session, model.target), *decode(session, model.target)):
                pass
        outputs.append(session.output)
        sources.append(set(session.counters.accepted_by))
    assert outputs == outputs[:1] * 3
    assert sources[0] == set()
    assert "model" in sources[1] & sources[2]


@pytest.mark.parametrize(
    ("proposer", "draft_model", "reason"),
    [
        ("auto+model", "", "needs a draft model"),
        ("model", "", "needs a draft model"),
        ("auto+model+model:sample", "m", "no proposer"),
        ("auto+suffix", "m", "no proposer"),
        ("auto+", "m", "no proposer"),
    ],
)
def test_a_proposer_that_lacks_its_model_or_makes_no_sense_is_refused(
    proposer: str, draft_model: str, reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        build.check_names(EngineConfig("m", proposer=proposer, draft_model=draft_model))


def test_naming_a_draft_model_uses_it_but_not_in_plain_decoding() -> None:
    assert EngineConfig("m", draft_model="d").drafting == "auto+model"
    assert EngineConfig("m", draft_model="d", proposer="none").drafting == "none"
    assert EngineConfig("m", draft_model="d", proposer="model:sample").drafting == "model:sample"
    assert EngineConfig("m").drafting == "auto"


def test_naming_heads_uses_them_too() -> None:
    assert EngineConfig("m", heads="f").drafting == "auto+heads"
    assert EngineConfig("m", heads="f", draft_model="d").drafting == "auto+model+heads"
    assert EngineConfig("m", heads="f", proposer="suffix+heads").drafting == "suffix+heads"
    assert EngineConfig("m", heads="f", proposer="none").drafting == "none"
