"""Configuration → what is to be run: the models, the jobs and the modes' runners.

Must not know how results are added up or shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from apply_server import models
from apply_server.bench.engine import Refused, engine_runner, jobs_of
from apply_server.bench.modes import INSTRUCTION, OURS, PLAIN, SNIPPET, Family, Mode
from apply_server.bench.peers import Peer, environment
from apply_server.bench.runs import Job, Runner
from apply_server.config import EngineConfig
from apply_server.decode.speedup import CostTable
from apply_server.engine.build import check_names, directed, load_model, model_engine
from apply_server.errors import InvalidRequest
from apply_server.replay.cases import Case


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cases are run: the first `limit` (None = all) of the kind and length wished for.

    `kind` is one of KINDS or None for both; `min_output` is the expected answer's least length, in
    tokens of the model. Raises InvalidRequest for a limit that leaves nothing.
    """

    cases: tuple[Case, ...]
    kind: str | None = None
    min_output: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise InvalidRequest(f"The number of cases must be at least 1, not {self.limit}.")

    def of_kind(self) -> Iterator[Case]:
        """The cases with a snippet, or those without."""
        for case in self.cases:
            if self.kind in {None, SNIPPET if case.snippet else INSTRUCTION}:
                yield case


@dataclass(frozen=True, slots=True)
class Bench:
    """Ready to be run. `facts` say for a report what is measured on what."""

    jobs: tuple[Job, ...]
    refused: tuple[Refused, ...]
    runners: tuple[tuple[Mode, Runner], ...]
    cost: CostTable
    facts: dict[str, object]


def prepare(
    config: EngineConfig,
    modes: Sequence[Mode],
    selection: Selection,
    report: models.Report,
    *,
    scripted: bool = False,
) -> Bench:
    """Load the model, for the peers its weights once more, and choose the jobs.

    `scripted`: the model makes its passes, and chooses what the cases expect. Raises
    ModelUnavailable, and InvalidRequest where no job is left or a mode can't do what is asked.
    """
    if scripted and (not config.sampling.plain or any(m.family is Family.HF for m in modes)):
        raise InvalidRequest(
            "A script says what apply-server's own model chooses, greedily: compare "
            f"--modes {PLAIN},{OURS}."
        )
    if not config.sampling.plain and any(mode.family is Family.HF for mode in modes):
        raise InvalidRequest(
            "generate is run greedily, without penalties: with these settings compare "
            f"--modes {PLAIN},{OURS}."
        )
    for mode in modes:
        check_names(configured(config, mode))
    # Every mode is to compute its prompts itself.
    model = load_model(replace(config, prefix_cache=0), report)

    found = list(jobs_of(selection.of_kind(), model_engine(model, config), selection.min_output))
    jobs = tuple(each for each in found if isinstance(each, Job))[: selection.limit]
    refused = tuple(each for each in found if isinstance(each, Refused))
    if not jobs:
        raise _nothing_left(selection, refused)

    def ours(mode: Mode) -> Runner:
        own = configured(config, mode)
        if scripted:
            answers = {job.prompt: job.expected for job in jobs}
            return engine_runner(model_engine(directed(model, answers), own))
        return engine_runner(model_engine(model, own))

    peer = _peer(config, modes, model.eos, report)
    runners = tuple(
        (mode, peer.runner(mode.lookup) if peer and mode.family is Family.HF else ours(mode))
        for mode in modes
    )
    facts = {
        "model": config.model,
        "profile": model.profile,
        "cases": [job.id for job in jobs],
        "refused": [{"id": each.case, **each.error.to_json()} for each in refused],
        "cost": model.cost.to_json(),
        "dtype": model.dtype,
        "scripted": scripted,
        **environment(config.device, config.dtype),
    }
    return Bench(jobs, refused, runners, model.cost, facts)


def configured(config: EngineConfig, mode: Mode) -> EngineConfig:
    """As the mode drafts: a specification means what it says, with no model or heads added."""
    if mode.proposer is None:
        return config
    draft_model = config.draft_model if "model" in mode.proposer else ""
    heads = config.heads if "heads" in mode.proposer else ""
    return replace(config, proposer=mode.proposer, draft_model=draft_model, heads=heads)


def _peer(
    config: EngineConfig, modes: Sequence[Mode], eos: frozenset[int], report: models.Report
) -> Peer | None:
    if not any(mode.family is Family.HF for mode in modes):
        return None
    report.notice("Loading the weights again for transformers' generate …")
    folder = models.resolve(config.model, report).folder
    return Peer.load(folder, config.device, config.dtype, eos)


def _nothing_left(selection: Selection, refused: Sequence[Refused]) -> InvalidRequest:
    reasons = "".join(f" {each.case}: {each.error.message}" for each in refused[:1])
    return InvalidRequest(
        f"No case is left of {len(selection.cases)}: {len(refused)} can't be run, the others are "
        f"of another kind or below {selection.min_output} tokens.{reasons}"
    )
