"""Examples: the states and choices that decoding would have, and where heads are asked."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch

from apply_server import models
from apply_server.config import EngineConfig
from apply_server.decode.draft import NO_DRAFT
from apply_server.decode.target import UNDECIDED
from apply_server.engine.build import load_model, model_engine
from apply_server.engine.local import LocalEngine
from apply_server.heads import examples
from apply_server.replay.cases import Case
from apply_server.replay.run import request_of
from tests.engine.support import save_model

ORIGINAL = "".join(f"row {number}\n" for number in range(12))
NEW = "something else entirely\n"


def case(expected: str) -> Case:
    return Case("one", "python", "a.py", ORIGINAL.encode(), "Add a line.", None, expected.encode())


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> LocalEngine[Any]:
    folder = save_model(tmp_path_factory.mktemp("model"))
    config = EngineConfig(str(folder), "cpu", "float32", cost="rho=300")
    return model_engine(load_model(config, models.Report()), config)


def test_states_and_choices_are_those_of_decoding_the_answer(engine: LocalEngine[Any]) -> None:
    one = case(ORIGINAL + "".join(f"{sha256(bytes([n])).hexdigest()}\n" for n in range(4)))
    found = examples.read(one, engine)
    assert found is not None
    assert len(found.tokens) > 2 * examples.BLOCK
    prompt = engine.prompt(request_of(one))
    target = engine.model.target
    slot = target.open(prompt.tokens, len(found.tokens))
    list(target.prefill(slot))
    for state, token, choice in zip(
        found.states, found.tokens.tolist(), found.choices.tolist(), strict=True
    ):
        (verdict,) = target.verify([(slot, NO_DRAFT)])
        assert verdict.features is not None
        assert choice in {verdict.choices[0], UNDECIDED}
        torch.testing.assert_close(state, verdict.features[0], rtol=1e-4, atol=1e-4)
        target.commit(slot, (), token)
    assert int((found.choices == UNDECIDED).sum()) < len(found.choices) // 4


def test_heads_are_asked_where_text_is_new_and_not_where_it_is_copied(
    engine: LocalEngine[Any],
) -> None:
    at = ORIGINAL.index("row 6")
    found = examples.read(case(ORIGINAL[:at] + NEW + ORIGINAL[at:]), engine)
    assert found is not None
    places = found.asked.nonzero()[:, 0].tolist()  # a token is a byte here
    assert places
    assert all(at <= place <= at + len(NEW) + 2 for place in places)
    assert len(places) >= len(NEW) // 2
    assert len(found.tokens) == places[-1] + examples.MARGIN


def test_an_answer_that_is_all_copied_teaches_nothing(engine: LocalEngine[Any]) -> None:
    assert examples.read(case(ORIGINAL), engine) is None


def test_what_was_read_is_not_read_again(engine: LocalEngine[Any], tmp_path: Path) -> None:
    cases = [case(ORIGINAL + NEW), replace(case(ORIGINAL), id="copied")]
    assert list(examples.collect(cases, engine, tmp_path)) == ["one"]
    (file,) = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    assert list(examples.collect(cases, engine, tmp_path)) == ["one"]
    assert file.stat().st_mtime_ns == written
    (loaded,) = examples.load(tmp_path)
    found = examples.read(cases[0], engine)
    assert found is not None
    assert loaded.tokens.tolist() == found.tokens.tolist()
    assert loaded.asked.tolist() == found.asked.tolist()
    torch.testing.assert_close(loaded.states, found.states.bfloat16().float())
