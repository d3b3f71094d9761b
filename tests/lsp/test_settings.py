"""Settings: what editors send, in which shapes, and what becomes of values that can't work."""

from __future__ import annotations

from dataclasses import fields

import pytest

from apply_server.config import EngineConfig
from apply_server.decode.sampling import Sampling
from apply_server.lsp.convert import engine_config
from apply_server.lsp.protocol import ApplyOptions
from apply_server.lsp.settings import CHECKS, Settings, update
from apply_server.models import DEFAULT_MODEL


def test_every_setting_is_checked() -> None:
    assert list(CHECKS) == [setting.name for setting in fields(Settings)]


def test_nothing_sent_leaves_everything() -> None:
    for values in (None, {}, [], "text", {"applyEdit": None}, {"applyEdit": {"verify": None}}):
        assert update(Settings(model="m"), values) == (Settings(model="m"), ())


@pytest.mark.parametrize("wrapped", [False, True])
def test_names_are_those_of_the_wire(wrapped: bool) -> None:
    sent = {"timeoutMs": 5, "maxRemovalRatio": 1, "warmUp": True, "trace": {"server": "verbose"}}
    settings, problems = update(Settings(), {"applyEdit": sent} if wrapped else sent)
    expected = Settings(timeout_ms=5, max_removal_ratio=1, warm_up=True, trace_server="verbose")
    assert (settings, problems) == (expected, ())


def test_a_dotted_name_may_be_sent_as_it_is() -> None:
    assert update(Settings(), {"trace.server": "messages"})[0].trace_server == "messages"


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("verify", "sometimes", "must be one of 'always', 'whenAmbiguous', 'never'"),
        ("verify", [], "must be one of 'always', 'whenAmbiguous', 'never'"),
        ("preview", 1, "must be one of 'always', 'never'"),
        ("timeoutMs", -1, "must be a whole number from 0 on"),
        ("timeoutMs", True, "must be a whole number from 0 on"),
        ("maxFileTokens", "8000", "must be a whole number from 0 on"),
        ("maxRemovalRatio", 0, "must be a number over 0, at most 1"),
        ("maxRemovalRatio", float("nan"), "must be a number over 0, at most 1"),
        ("lineEndings", "crlf", "must be one of 'preserve'"),
        ("model", " ", "must be a name"),
        ("endpoint", 3, "must be a string"),
        ("warmUp", "yes", "must be true or false"),
        ("profile", 3, "must be a string"),
        ("draftModel", ["small"], "must be a string"),
        ("temperature", -0.1, "must be from 0 to 100"),
        ("temperature", float("nan"), "must be from 0 to 100"),
        ("temperature", "1", "must be a number"),
        ("topP", 0, "must be above 0 and at most 1"),
        ("topP", False, "must be a number"),
        ("topK", -1, "must be 0 or more"),
        ("topK", 1.5, "must be a whole number"),
        ("seed", 2**63, "must be from 0 to 2^63 - 1"),
        ("seed", True, "must be a whole number"),
        ("repetitionPenalty", 0, "must be above 0 and at most 100"),
    ],
)
def test_what_cannot_work_is_reset_and_told(name: str, value: object, problem: str) -> None:
    before = Settings(
        verify="never", timeout_ms=9, max_file_tokens=9, model="other", warm_up=True,
        profile="chat", draft_model="small", temperature=0.5, top_p=0.9, top_k=5, seed=5,
        repetition_penalty=1.5,
    )  # fmt: skip
    settings, problems = update(before, {name: value})
    assert problems == (f"applyEdit.{name} {problem}; the default is used.",)
    assert update(before, {name: _default(name)})[0] == settings


def _default(name: str) -> object:
    defaults = {
        "verify": "always", "preview": "always", "timeoutMs": 0, "maxFileTokens": 0,
        "maxRemovalRatio": 0.6, "lineEndings": "preserve", "endpoint": "", "warmUp": False,
        "model": "qwen2.5-coder-1.5b-instruct", "profile": "", "draftModel": "", "temperature": 0.0,
        "topP": 1.0, "topK": 0, "seed": 0, "repetitionPenalty": 1.0,
    }  # fmt: skip
    return defaults[name]


def test_how_tokens_are_drafted_and_chosen_reaches_the_engine() -> None:
    sent = {
        "profile": "chat", "proposer": "auto+model", "draftModel": "small", "temperature": 1,
        "topP": 0.9, "topK": 40, "seed": 7, "repetitionPenalty": 1.1,
    }  # fmt: skip
    settings, problems = update(Settings(model="large"), sent)
    assert problems == ()
    assert engine_config(settings, ApplyOptions()) == EngineConfig(
        "large",
        profile="chat",
        proposer="auto+model",
        draft_model="small",
        sampling=Sampling(1, 0.9, 40, 7, 1.1),
    )


def test_the_defaults_are_the_command_lines() -> None:
    assert engine_config(Settings(), ApplyOptions()) == EngineConfig(DEFAULT_MODEL)
