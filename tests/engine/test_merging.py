"""When a model is asked, and what happens without one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event

import pytest

from apply_server import models
from apply_server.config import EngineConfig, Verify
from apply_server.edits import LineEdit
from apply_server.engine.base import Delta, Done, Engine, EngineEvent, ModelNeeded, Preview
from apply_server.engine.build import build_engine
from apply_server.engine.merging import PolicyEngine, predict
from apply_server.errors import AmbiguousTarget, ApplyError, InvalidRequest
from apply_server.request import EditRequest
from tests.engine.support import request

ORIGINAL = "def first():\r\n    return 1\r\n\r\n\r\ndef second():\r\n    return 2"
PATCH = "def second():\n    return 3\n"
ANSWERED = Done((), "the model's")


@dataclass
class CountingModel:
    """Stands in for a model's engine; `loads` counts how often it was asked for."""

    loads: int = 0
    asked: list[EditRequest] = field(default_factory=list)

    def load(self) -> Engine:
        self.loads += 1
        return self

    def run(self, request: EditRequest, cancel: Event) -> Iterator[EngineEvent]:
        self.asked.append(request)
        yield ANSWERED


def run(verify: Verify, model: CountingModel, asked: EditRequest) -> Done:
    *_, done = PolicyEngine(verify, model.load).run(asked, Event())
    assert isinstance(done, Done)
    return done


@pytest.mark.parametrize("verify", [Verify.NEVER, Verify.WHEN_AMBIGUOUS])
def test_a_clear_snippet_is_spliced_without_loading_the_model(verify: Verify) -> None:
    model = CountingModel()
    done = run(verify, model, request(ORIGINAL, snippet=PATCH))
    assert done.text == ORIGINAL.replace("return 2", "return 3")
    assert [(edit.start, edit.end, edit.lines) for edit in done.edits] == [
        (5, 6, ("    return 3",))
    ]
    assert not done.verified
    assert done.report.target_passes == 0
    assert model.loads == 0


def test_always_asks_the_model_for_a_clear_snippet_too() -> None:
    model = CountingModel()
    asked = request(ORIGINAL, snippet=PATCH)
    assert run(Verify.ALWAYS, model, asked) is ANSWERED
    assert model.asked == [asked]


def test_a_clear_merge_is_shown_before_the_model_is_needed() -> None:
    model = CountingModel()
    asked = request(ORIGINAL, snippet=PATCH)
    events = PolicyEngine(Verify.ALWAYS, model.load).run(asked, Event())
    assert next(events) == Preview((LineEdit(5, 6, ("    return 3",)),))
    assert next(events) == ModelNeeded()
    assert model.loads == 0
    # This model changes nothing, so the preview is taken back before the end.
    assert list(events) == [Delta(0, 6, ()), ANSWERED]


def test_without_a_clear_merge_nothing_is_shown() -> None:
    events = PolicyEngine(Verify.ALWAYS, CountingModel().load).run(
        request(ORIGINAL, instruction="x"), Event()
    )
    assert list(events) == [ModelNeeded(), ANSWERED]


@pytest.mark.parametrize(
    "asked",
    [
        request(ORIGINAL, instruction="rename first to third"),
        request(
            "x = 1\ny = 2\nx = 1\n",
            snippet="<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n",
        ),
        request("a\n", snippet="<<<<<<< SEARCH\nq\n=======\nx\n>>>>>>> REPLACE\n"),
    ],
    ids=["instruction", "search in two places", "search not found"],
)
def test_what_the_merge_cannot_decide_is_the_models(asked: EditRequest) -> None:
    model = CountingModel()
    assert run(Verify.WHEN_AMBIGUOUS, model, asked) is ANSWERED
    assert model.loads == 1
    model = CountingModel()
    with pytest.raises(ApplyError):
        run(Verify.NEVER, model, asked)
    assert model.loads == 0


def test_two_places_are_listed() -> None:
    asked = request(
        "x = 1\ny = 2\nx = 1\n", snippet="<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"
    )
    with pytest.raises(AmbiguousTarget) as caught:
        predict(asked)
    assert caught.value.details["lines"] == [1, 3]


def test_an_instruction_alone_needs_the_model_and_says_so() -> None:
    with pytest.raises(InvalidRequest, match="needs the model"):
        run(Verify.NEVER, CountingModel(), request(ORIGINAL, instruction="x"))


def test_an_edit_that_is_applied_already_changes_nothing() -> None:
    done = run(
        Verify.NEVER, CountingModel(), request(ORIGINAL, snippet="def second():\n    return 2\n")
    )
    assert (done.text, done.edits) == (ORIGINAL, ())


def test_the_engine_users_get_fetches_nothing_until_an_edit_needs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: list[str] = []

    def fetch(name: str, report: models.Report) -> None:
        names.append(name)
        raise InvalidRequest("fetching")

    monkeypatch.setattr(models, "resolve", fetch)
    engine = build_engine(EngineConfig("some-model", verify=Verify.WHEN_AMBIGUOUS), models.Report())
    list(engine.run(request(ORIGINAL, snippet=PATCH), Event()))
    assert names == []
    with pytest.raises(InvalidRequest, match="fetching"):
        list(engine.run(request(ORIGINAL, instruction="x"), Event()))
    assert names == ["some-model"]
