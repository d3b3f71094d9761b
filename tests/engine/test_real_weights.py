"""Real weights, fetched on first use: exactness on real text, real edits by the default model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from apply_server.config import EngineConfig
from apply_server.decode.loop import decode, prefill
from apply_server.decode.session import Session
from apply_server.engine.base import Done
from apply_server.engine.build import load_model, model_engine
from apply_server.engine.local import Model, task_of
from apply_server.models import DEFAULT_MODEL, Report
from apply_server.prompt import Answer, build_prompt
from apply_server.propose.build import DraftSources, build_proposer
from apply_server.replay.cases import Case, load_cases
from apply_server.replay.run import request_of
from apply_server.target.transformers_model import TransformersSlot
from apply_server.view import ModelView

FIXTURES = Path(__file__).parents[2] / "fixtures"
SMOLLM = EngineConfig("smollm2-135m-instruct", device="cpu", dtype="float32")
# So weak a model may babble on; what it says up to here is enough to compare.
LIMIT = 80


def case(name: str) -> Case:
    (only,) = load_cases([FIXTURES / name])
    return only


@pytest.fixture(scope="module")
def smollm() -> Model[TransformersSlot]:
    return load_model(SMOLLM, Report())


def output(model: Model[TransformersSlot], asked: Case, kind: str) -> Session[TransformersSlot]:
    """What the model answers within LIMIT tokens, complete or not."""
    request = request_of(asked)
    task = task_of(request, ModelView.of(request.document))
    prompt = build_prompt(task, model.profile, model.tokenizer, model.template)
    proposer = build_proposer(DraftSources(prompt.source, prompt.snippet), model.cost, kind)
    answer = Answer(model.tokenizer.stream(), prompt.end, model.eos)
    slot = model.target.open(prompt.tokens, LIMIT)
    session = Session(slot, proposer, answer, LIMIT)
    try:
        for step in (prefill, decode):
            for _ in step(session, model.target):
                pass
    finally:
        model.target.close(slot)
    return session


@pytest.mark.weights
@pytest.mark.parametrize(
    "name", ["python-delete-legacy-sum", "toml-package-version", "yaml-ci-matrix"]
)
def test_speculative_output_is_plain_greedy_output_token_for_token(
    smollm: Model[TransformersSlot], name: str
) -> None:
    plain = output(smollm, case(name), "none")
    assert plain.counters.target_passes == len(plain.output)
    for kind in ("suffix", "auto"):
        drafted = output(smollm, case(name), kind)
        assert drafted.output == plain.output
        assert drafted.finish is plain.finish
        assert drafted.counters.target_passes < plain.counters.target_passes / 2


@pytest.mark.weights
def test_the_same_request_twice_costs_the_same(smollm: Model[TransformersSlot]) -> None:
    asked = case("toml-package-version")
    first, second = (output(smollm, asked, "auto").counters for _ in range(2))
    same = {"prefill_s": 0.0, "decode_s": 0.0, "propose_s": 0.0}
    assert replace(first, **same) == replace(second, **same)


@pytest.fixture(scope="module")
def default_model() -> Model[TransformersSlot]:
    return load_model(EngineConfig(DEFAULT_MODEL), Report())


@pytest.mark.model
@pytest.mark.parametrize("name", ["python-checkout-rename", "toml-service-config"])
def test_the_default_model_applies_a_rename_and_a_lazy_snippet_exactly(
    default_model: Model[TransformersSlot], name: str
) -> None:
    asked = case(name)
    request = request_of(asked)
    events: Sequence[object] = list(
        model_engine(default_model, EngineConfig(DEFAULT_MODEL)).run(request, Event())
    )
    done = events[-1]
    assert isinstance(done, Done)
    assert request.document.encode(done.text) == asked.expected
    assert done.verified
