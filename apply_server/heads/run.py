"""From cases to draft heads beside the model: decode, train, measure, save.

Must not know how progress is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from apply_server import models
from apply_server.config import EngineConfig
from apply_server.engine.build import HEADS_FILE, load_model, model_engine
from apply_server.errors import InvalidRequest, ModelUnavailable
from apply_server.heads import examples
from apply_server.heads.train import Progress, accuracies, pairs_of, split, train, vocabulary_of
from apply_server.propose.head_file import head_facts, output_rows, save_heads, trained_for
from apply_server.replay.cases import Case

LEAST_ANSWERS = 2
READING = 0.7
"""The share of the time in which answers are read; the rest is for training on them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How many heads, for how many steps they are trained, and the most `minutes` for all of it.

    Raises InvalidRequest where there is nothing of one of them.
    """

    heads: int = 3
    steps: int = 600
    minutes: float = 60.0

    def __post_init__(self) -> None:
        if self.heads < 1 or self.steps < 1 or not self.minutes > 0:
            raise InvalidRequest("At least one head, one step and some time are needed.")


@dataclass(frozen=True, slots=True)
class Stage:
    """What a run is doing: `done` of `total`, and a few words on it."""

    name: str
    done: int
    total: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Trained:
    """`accuracies[k]`: in what share of the places of held-out answers where copying knows nothing
    the first k + 1 heads were all right. `tokens_per_pass` is what chains of them bring there.
    """

    path: Path
    answers: int
    accuracies: tuple[float, ...]

    @property
    def tokens_per_pass(self) -> float:
        """One, and the expected number of heads that are right in a row."""
        return 1.0 + sum(self.accuracies)


def train_heads(
    cases: Sequence[Case],
    config: EngineConfig,
    plan: Plan,
    report: models.Report,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Stage | Trained]:
    """Stages, and in the end what came of it. Interrupted, the next run goes on from there.

    `clock` tells seconds. Raises InvalidRequest where fewer than LEAST_ANSWERS cases can be read.
    """
    started = clock()

    def spent(share: float) -> bool:
        return clock() - started >= 60 * plan.minutes * share

    folder = models.resolve(config.model, report).folder
    work = (folder / HEADS_FILE).parent / "training"
    engine = model_engine(load_model(config, report), replace(config, proposer="auto"))
    for done, case in enumerate(examples.collect(cases, engine, work / "answers"), start=1):
        yield Stage("Reading edits", done, len(cases), case)
        if done >= LEAST_ANSWERS and spent(READING):
            break
    answers = examples.load(work / "answers")
    if len(answers) < LEAST_ANSWERS:
        raise InvalidRequest(f"{len(answers)} answers are too few to train on and to measure.")
    checkpoint = work / f"{plan.heads}-heads.pt"
    yield from _train(answers, folder, plan, checkpoint, lambda: spent(1.0))


def known_heads() -> Iterator[tuple[str, str]]:
    """Each model that is here and has draft heads, with what is known of them."""
    for entry in models.REGISTRY:
        try:
            folder = models.model_store().path(entry.name)
            facts = head_facts(folder / HEADS_FILE)
        except ModelUnavailable:
            continue
        other = trained_for(facts, models.fingerprint(folder))
        stale = "" if other is None else f"for {other}, "
        right = ", ".join(f"{float(share):.0%}" for share in facts["right"].split())
        yield (
            entry.name,
            f"{stale}{facts['answers']} answers, {facts['steps']} steps, right: {right}",
        )


def _train(
    answers: Sequence[examples.Examples],
    folder: Path,
    plan: Plan,
    checkpoint: Path,
    late: Callable[[], bool],
) -> Iterator[Stage | Trained]:
    rows = output_rows(folder)
    vocabulary = vocabulary_of(answers, rows.get_shape()[0])
    matrix = rows[:][vocabulary].float()
    training, held_out = split(answers)
    pairs, measured = pairs_of(training, vocabulary), pairs_of(held_out, vocabulary)
    shares: list[float] = []
    for progress in train(pairs, matrix, plan.heads, plan.steps, checkpoint):
        shares = accuracies(measured, matrix, progress.weights, progress.biases)
        _save(folder, progress, shares, len(answers))
        detail = f"loss {progress.loss:.2f}, right {' '.join(f'{s:.0%}' for s in shares)}"
        yield Stage("Training", progress.done, progress.total, detail)
        if late():
            break
    found = shares or [float(s) for s in head_facts(folder / HEADS_FILE)["right"].split()]
    yield Trained(folder / HEADS_FILE, len(answers), tuple(found))


def _save(folder: Path, progress: Progress, shares: Sequence[float], answers: int) -> None:
    facts = {
        "steps": str(progress.done),
        "answers": str(answers),
        "right": " ".join(map(str, shares)),
    }
    tensors = (progress.weights, progress.biases)
    save_heads(folder / HEADS_FILE, *tensors, facts, models.fingerprint(folder))
