"""Configuration → engine: the only place that names implementations."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from apply_server import models
from apply_server.chat_template import ChatTemplate
from apply_server.config import EngineConfig
from apply_server.decode.speedup import CostTable
from apply_server.document import Document
from apply_server.engine.base import Engine
from apply_server.engine.cost import cost_table, measurements_of
from apply_server.engine.guarded import GuardedEngine
from apply_server.engine.local import LocalEngine, Model, task_of
from apply_server.engine.merging import PolicyEngine
from apply_server.engine.paced import PacedTarget
from apply_server.engine.selected import SelectedEngine
from apply_server.engine.threads import check_threads, settle_threads
from apply_server.errors import InvalidRequest, ModelUnavailable, Remedy
from apply_server.prompt import PROFILES, answer_text
from apply_server.propose.build import (
    NOVEL,
    ProposerFactory,
    heads_factory,
    model_factory,
    parse_proposer,
)
from apply_server.propose.head_file import load_heads, output_rows
from apply_server.propose.heads import DraftHeads
from apply_server.request import EditRequest
from apply_server.target.directed import DirectedSlot, DirectedTarget
from apply_server.target.scripted import ScriptedSlot, ScriptedTarget
from apply_server.target.support import DTYPES, resolve_device
from apply_server.target.transformers_model import TransformersSlot, TransformersTarget
from apply_server.tokens import HuggingFaceTokenizer, Tokenizer, WordTokenizer
from apply_server.view import ModelView

SlotT = TypeVar("SlotT")

# For scripted runs: a processor on which prefill runs fifteen times as fast as decoding.
DEFAULT_COST = CostTable.synthetic(15.0)
# Beside the model's weights, in a folder of its own, as all weights of a folder are the model's.
HEADS_FILE = Path("draft-heads", "heads.safetensors")
_MIB = 1 << 20
# What a target is watched computing, in a block and token by token.
_TYPICAL = "def total(prices):\n    return sum(price for price in prices)\n"
_SCRIPTED_PROFILE = "chat"
_PLAIN_TEMPLATE = ChatTemplate("{% for m in messages %}{{ m.content }}\n{% endfor %}")


def build_engine(config: EngineConfig, report: models.Report) -> Engine:
    """The engine that users get. The model is fetched and loaded when an edit first needs it."""

    check_names(config)

    @functools.cache
    def local() -> Engine:
        return model_engine(load_model(config, report), config)

    return guarded(PolicyEngine(config.verify, local), config)


def guarded(engine: Engine, config: EngineConfig) -> Engine:
    """The same engine for selections too, its results checked before anybody sees them."""
    return GuardedEngine(SelectedEngine(engine), config.allowed_guards, config.max_removal)


def load_model(config: EngineConfig, report: models.Report) -> Model[TransformersSlot]:
    """Fetch what is missing and load the weights; last, as they take longest.

    Raises ModelUnavailable, and InvalidRequest for an unknown profile or number type.
    """
    check_names(config)
    resolve_device(config.device)
    files = models.resolve(config.model, report)
    tokenizer = HuggingFaceTokenizer(files.folder / "tokenizer.json", config.model)
    template = ChatTemplate.load(files.folder)
    eos = end_of_sequence(files.folder)
    draft_folder = _draft_folder(config, tokenizer, report)
    report.notice("Loading the model …")
    cost = _given_cost(config)
    target = TransformersTarget.load(
        files.folder, config.device, config.dtype, config.prefix_cache * _MIB
    )
    costs = models.model_store().cache.root / "costs"
    threads = settle_threads(config.threads, target, files.folder, costs)
    measured = measurements_of(target, files.folder, costs, threads)
    typical = tokenizer.encode(_TYPICAL)
    target.widen_tolerance(measured.once("spread", float, lambda: target.spread(typical)))
    return Model(
        target,
        tokenizer,
        template,
        config.profile or files.profile,
        eos,
        target.context,
        cost or cost_table(target, measured),
        target.dtype,
        _load_drafter(draft_folder, config),
        _load_heads(files.folder, target, config),
    )


def model_engine(model: Model[SlotT], config: EngineConfig) -> LocalEngine[SlotT]:
    """An engine over weights that are loaded already."""
    proposer = parse_proposer(config.drafting, _novel(model, config))
    return LocalEngine(model, proposer, config.max_new, config.max_file, config.sampling)


def _novel(model: Model[SlotT], config: EngineConfig) -> dict[str, ProposerFactory]:
    """What the model brings to draft novel text with, by its name in a proposer's specification."""
    found: dict[str, ProposerFactory] = {}
    if model.drafter is not None:
        greedy = replace(config.sampling, temperature=0.0)
        found["model"] = model_factory(model.drafter, greedy)
        found["model:sample"] = model_factory(model.drafter, config.sampling)
    if model.heads is not None:
        found["heads"] = heads_factory(model.heads)
    return found


def _load_heads(
    folder: Path, target: TransformersTarget, config: EngineConfig
) -> DraftHeads | None:
    """The named file's heads, or those beside the model.

    Where nobody asked for them they may be missing or outdated: None. Else raises ModelUnavailable.
    """
    path = Path(config.heads) if config.heads else folder / HEADS_FILE
    try:
        rows = output_rows(folder)
        return load_heads(
            path, models.fingerprint(folder), target.network.project, lambda token: rows[token]
        )
    except ModelUnavailable:
        if config.heads or "heads" in config.proposer:
            raise
        return None


def _load_drafter(folder: Path | None, config: EngineConfig) -> TransformersTarget | None:
    return None if folder is None else TransformersTarget.load(folder, config.device, config.dtype)


def _draft_folder(
    config: EngineConfig, tokenizer: HuggingFaceTokenizer, report: models.Report
) -> Path | None:
    """The draft model's folder, once its tokenizer is known to be the target's."""
    if not config.draft_model:
        return None
    folder = models.resolve(config.draft_model, report).folder
    theirs = HuggingFaceTokenizer(folder / "tokenizer.json", config.draft_model)
    difference = tokenizer.difference(theirs)
    if difference:
        raise ModelUnavailable(
            f"{config.draft_model} can't draft for {config.model}: their tokenizers differ "
            f"({difference})."
        )
    return folder


def scripted_engine(
    tokenizer: Tokenizer,
    request: EditRequest,
    expected: Document,
    config: EngineConfig,
    pass_delay_s: float = 0.0,
) -> LocalEngine[ScriptedSlot]:
    """An engine whose model is known to answer with `expected`: drafting without weights."""
    view = ModelView.of(request.document)
    closing = PROFILES[_SCRIPTED_PROFILE](task_of(request, view)).closing
    answer = tokenizer.encode(answer_text(view.answer(expected.line_texts()), closing))
    target = PacedTarget(ScriptedTarget(lambda prompt: answer), pass_delay_s)
    cost = _given_cost(config) or DEFAULT_COST
    model = Model(
        target, tokenizer, _PLAIN_TEMPLATE, _SCRIPTED_PROFILE, frozenset(), sys.maxsize, cost
    )
    proposer = parse_proposer(config.proposer)
    return LocalEngine(model, proposer, config.max_new, config.max_file)


def directed(
    model: Model[TransformersSlot], answers: Mapping[tuple[int, ...], tuple[int, ...]]
) -> Model[DirectedSlot[TransformersSlot, ScriptedSlot]]:
    """A loaded model that makes its passes and chooses as `answers` (prompt → tokens) say.

    Near-ties among the choices that it isn't asked for cost no passes.
    """
    assert isinstance(model.target, TransformersTarget)
    target = TransformersTarget(model.target.network, model.context, tolerance=0.0)
    script = ScriptedTarget(lambda prompt: answers[tuple(prompt)])
    rest: Any = model  # `replace` can't change a type parameter
    found: Model[DirectedSlot[TransformersSlot, ScriptedSlot]] = replace(
        rest, target=DirectedTarget(target, script)
    )
    return found


def check_scripted(config: EngineConfig) -> None:
    """Raises InvalidRequest where a scripted target would drop a setting silently."""
    parse_proposer(config.drafting)
    if not config.sampling.plain:
        raise InvalidRequest(
            "A scripted target knows its answer: it takes no temperature and no penalty."
        )


def choose_tokenizer(name: str | None) -> Tokenizer:
    """For scripted runs: `name` is a model, "words" the built-in one.

    None: the default model's if it has been fetched, else the built-in one. Never fetches; raises
    ModelUnavailable for a model that isn't there.
    """
    if name == WordTokenizer.name:
        return WordTokenizer()
    path = models.tokenizer_path(name or models.DEFAULT_MODEL)
    if path is not None:
        return HuggingFaceTokenizer(path, name or models.DEFAULT_MODEL)
    if name is None:
        return WordTokenizer()
    raise ModelUnavailable(
        f"The tokenizer of {name} is not here yet: `apply-server models pull {name}` fetches it."
    )


def end_of_sequence(folder: Path) -> frozenset[int]:
    """The ids that end an answer, from the model's generation or plain configuration."""
    for name in ("generation_config.json", "config.json"):
        path = folder / name
        found = json.loads(path.read_text("utf-8")).get("eos_token_id") if path.is_file() else None
        if found is not None:
            return frozenset(found if isinstance(found, list) else [found])
    return frozenset()


def check_names(config: EngineConfig) -> None:
    """Check names before anything is fetched. Raises InvalidRequest."""
    parse_proposer(config.drafting, dict.fromkeys(NOVEL, parse_proposer("none")))
    if "model" in config.proposer and not config.draft_model:
        raise InvalidRequest(
            f"{config.proposer!r} needs a draft model.",
            remedy=Remedy("draft_model", ("NAME",), "says which."),
        )
    _given_cost(config)
    check_threads(config.threads)
    for what, name, known in (
        ("prompt profile", config.profile, ("", *PROFILES)),
        ("number type", config.dtype, DTYPES),
    ):
        if name not in known:
            choices = ", ".join(filter(None, known))
            raise InvalidRequest(f"Unknown {what} {name!r}. Choose one of {choices}.")


def _given_cost(config: EngineConfig) -> CostTable | None:
    """The table that the user names, None where it is to be found. Raises InvalidRequest."""
    try:
        return CostTable.parse(config.cost) if config.cost else None
    except ValueError as error:
        raise InvalidRequest(f"Bad cost table: {error}.") from None
