"""Engines for a process that outlives one request: the weights are loaded once and kept.

Must not know who asks, nor how settings are written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from apply_server import models
from apply_server.config import EngineConfig
from apply_server.document import Document
from apply_server.engine import build
from apply_server.engine.base import Engine, EngineEvent, ModelEngine, Prefilling
from apply_server.engine.local import Model
from apply_server.engine.merging import PolicyEngine
from apply_server.errors import InvalidRequest, ModelUnavailable
from apply_server.request import EditRequest
from apply_server.tokens import WordTokenizer

Source = Callable[[EngineConfig, models.Report], ModelEngine]
"""The engine with the model in it; called on the model's thread, may take minutes."""


def provide(source: Source, config: EngineConfig, report: models.Report) -> Engine:
    """The engine that users get; `source` is asked when an edit first needs the model."""
    build.check_names(config)
    return build.guarded(PolicyEngine(config.verify, lambda: source(config, report)), config)


@dataclass(slots=True)
class LoadedModel:
    """The model that was asked for last. A failure is not kept: the next request tries again."""

    _key: tuple[str | int, ...] = ()
    _model: Model[Any] | None = field(default=None, repr=False)

    def engine(self, config: EngineConfig, report: models.Report) -> ModelEngine:
        """See Source. Only one thread may ask."""
        key = (
            config.model,
            config.device,
            config.dtype,
            config.threads,
            config.profile,
            config.draft_model,
            config.heads,
            config.cost,
            config.prefix_cache,
        )
        if self._model is None or self._key != key:
            self._model = None  # two models at once may not fit
            self._model, self._key = build.load_model(config, report), key
        return build.model_engine(self._model, config)


@dataclass(frozen=True, slots=True)
class ScriptedAnswers:
    """Answers known beforehand instead of a model: servers and editors can be tried without one.

    `answers` holds the whole file after the edit, by the file's name or the SHA-256 of its text.
    """

    answers: Mapping[str, str]
    pass_delay_s: float = 0.0

    @classmethod
    def load(cls, path: Path, pass_delay_s: float) -> ScriptedAnswers:
        """Read `{name or hash: text}`. Raises InvalidRequest."""
        try:
            answers = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidRequest(f"{path} is no file of answers: {error}.") from error
        if not isinstance(answers, dict) or not all(
            isinstance(text, str) for text in answers.values()
        ):
            raise InvalidRequest(f"{path} must hold one JSON object of texts.")
        return cls(answers, pass_delay_s)

    def engine(self, config: EngineConfig, report: models.Report) -> ModelEngine:
        """See Source. Raises InvalidRequest for settings that need a model."""
        build.check_scripted(config)
        return _Scripted(self, config)

    def answer(self, request: EditRequest) -> Document:
        """Raises ModelUnavailable where there is none."""
        digest = hashlib.sha256(request.document.text.encode()).hexdigest()
        text = self.answers.get(digest, self.answers.get(request.name))
        if text is None:
            raise ModelUnavailable(f"The script has no answer for {request.name}.")
        return Document.from_text(text)


@dataclass(frozen=True, slots=True)
class _Scripted:
    script: ScriptedAnswers
    config: EngineConfig

    def run(self, request: EditRequest, cancel: Event) -> Iterator[EngineEvent]:
        """See Engine.run."""
        expected = self.script.answer(request)
        engine = build.scripted_engine(
            WordTokenizer(), request, expected, self.config, self.script.pass_delay_s
        )
        yield from engine.run(request, cancel)

    def warm(
        self, document: Document, name: str, language: str, cancel: Event
    ) -> Iterator[Prefilling]:
        """See ModelEngine.warm: who knows the answer has nothing to compute ahead."""
        yield from ()
