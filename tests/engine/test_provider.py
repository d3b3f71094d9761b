"""Engines of a process that goes on: what is loaded again, and what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apply_server.config import EngineConfig, Verify
from apply_server.decode.sampling import Sampling
from apply_server.engine import build
from apply_server.engine.provider import LoadedModel
from apply_server.models import Report

CONFIG = EngineConfig("large")


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[EngineConfig]:
    """What a model was loaded for."""
    configs: list[EngineConfig] = []
    monkeypatch.setattr(
        build, "load_model", lambda config, report: configs.append(config) or config
    )
    monkeypatch.setattr(build, "model_engine", lambda model, config: (model, config))
    return configs


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"}, {"device": "cpu"}, {"dtype": "float32"}, {"profile": "chat"},
        {"draft_model": "small"}, {"heads": "heads.safetensors"}, {"cost": "rho=15"},
    ],
)  # fmt: skip
def test_another_model_is_loaded(loaded: list[EngineConfig], change: dict[str, str]) -> None:
    model, other = LoadedModel(), replace(CONFIG, **change)
    for config in (CONFIG, CONFIG, other, other):
        assert model.engine(config, Report()) == (config, config)
    assert loaded == [CONFIG, other]


@pytest.mark.parametrize(
    "change",
    [
        {"proposer": "none"}, {"sampling": Sampling(1.0)}, {"max_new": 5}, {"max_file": 5},
        {"verify": Verify.WHEN_AMBIGUOUS}, {"allowed_guards": frozenset({"syntax"})},
        {"max_removal": 0.5},
    ],
)  # fmt: skip
def test_the_same_model_serves_other_settings(
    loaded: list[EngineConfig], change: dict[str, object]
) -> None:
    model, other = LoadedModel(), replace(CONFIG, **change)
    model.engine(CONFIG, Report())
    assert model.engine(other, Report()) == (CONFIG, other)
    assert loaded == [CONFIG]
