"""The whole command on a tiny model: trained, listed, used, resumed; refused for other weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from apply_server import models
from apply_server.cli import main
from apply_server.config import EngineConfig
from apply_server.decode.loop import decode, prefill
from apply_server.engine.build import HEADS_FILE, load_model, model_engine
from apply_server.errors import ModelUnavailable
from apply_server.heads.run import Plan, Stage, Trained, train_heads
from apply_server.replay.cases import Case
from tests.engine.support import request, save_model


def case(name: str) -> Case:
    original = f"{name} = 1\n".encode()
    return Case(name, "python", "file.py", original, "add one", None, original + b"one = 1\n")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineConfig:
    monkeypatch.setenv("APPLY_SERVER_CACHE", str(tmp_path / "cache"))
    folder = save_model(tmp_path / "model", context=600)
    return EngineConfig(str(folder), "cpu", "float32", cost="rho=300", max_new=40)


CASES = [case("a"), case("b"), case("c")]


def test_heads_are_trained_used_and_refused_for_other_weights(config: EngineConfig) -> None:
    *stages, trained = train_heads(CASES, config, Plan(2, 60), models.Report())
    assert isinstance(trained, Trained)
    assert trained.path == Path(config.model) / HEADS_FILE
    assert (trained.answers, len(trained.accuracies)) == (3, 2)
    assert trained.tokens_per_pass == pytest.approx(1.0 + sum(trained.accuracies))
    done = [(stage.name, stage.done, stage.total) for stage in stages if isinstance(stage, Stage)]
    assert done == [
        *(("Reading edits", n, 3) for n in (1, 2, 3)),
        ("Training", 50, 60),
        ("Training", 60, 60),
    ]

    again = list(train_heads(CASES, config, Plan(2, 60), models.Report()))
    assert again[-1] == trained  # nothing is left to do
    assert not [stage for stage in again if isinstance(stage, Stage) and stage.name == "Training"]

    model = load_model(replace(config, proposer="heads"), models.Report())
    outputs = []
    for proposer in ("none", "heads", "auto+heads"):
        engine = model_engine(model, replace(config, proposer=proposer))
        prompt = engine.prompt(request("x = 1\n", "add two"))
        with engine.session(prompt, engine.answer(prompt), Event()) as session:
            for _ in (*prefill(session, model.target), *decode(session, model.target)):
                pass
        outputs.append(session.output)
        assert ("heads" in session.counters.drafted_by) == ("heads" in proposer)
    assert outputs == outputs[:1] * 3

    settings = Path(config.model) / "config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"_changed": 1}))
    with pytest.raises(ModelUnavailable, match="trained for another model"):
        load_model(replace(config, proposer="heads"), models.Report())


def test_time_that_is_up_ends_reading_and_training(config: EngineConfig) -> None:
    many = [case(f"name{number}") for number in range(9)]
    clock = iter(range(0, 10_000, 10)).__next__  # ten seconds pass whenever somebody looks
    *stages, trained = train_heads(many, config, Plan(1, 900, 1.0), models.Report(), clock)
    assert isinstance(trained, Trained)
    done = [(stage.name, stage.done) for stage in stages if isinstance(stage, Stage)]
    assert done == [*(("Reading edits", n) for n in range(1, 7)), ("Training", 50)]
    assert trained.answers == 6


def test_the_command_trains_and_says_what_came_of_it(
    config: EngineConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sources").mkdir()
    for name in "abc":
        text = "".join(f"{name}{number} = {number}\n" for number in range(10))
        (tmp_path / "sources" / f"{name}.py").write_text(text, "utf-8")
    cases = tmp_path / "sources"
    arguments = ["--model", config.model, "--device", "cpu", "--dtype", "float32"]
    status = main(["heads", "train", str(cases), *arguments, "--count", "1", "--steps", "10"])
    out = capsys.readouterr().out
    assert status == 0
    assert "tokens a pass there" in out
    assert (Path(config.model) / HEADS_FILE).is_file()
    assert main(["heads", "train", str(cases), *arguments, "--count", "0"]) == 2
    assert "InvalidRequest" in capsys.readouterr().err
    assert main(["heads", "list"]) == 0
    assert capsys.readouterr().out == ""  # no known model is here
