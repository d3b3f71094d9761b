"""A model's own answers to edits as examples: hidden states, tokens, and which tokens are novel.

Each case is a file, so that an interrupted run goes on where it stopped. Must not know how heads
are trained.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from apply_server.decode.draft import Draft, Features, Proposer, Step
from apply_server.decode.loop import decode, prefill
from apply_server.engine.local import LocalEngine
from apply_server.errors import ApplyError
from apply_server.replay.cases import Case
from apply_server.replay.run import request_of

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Examples:
    """One answer: `states` [n, hidden], `tokens` [n] chosen from them, and `novel` [n]: whether the
    token was the target's own, so that what follows it could not be copied for certain.
    """

    states: Tensor
    tokens: Tensor
    novel: Tensor


@dataclass(slots=True)
class Recorder:
    """Passes everything on and keeps what the target emitted."""

    inner: Proposer
    states: list[Features] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    novel: list[bool] = field(default_factory=list)

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        """The inner proposer's."""
        return self.inner.propose(context, limit)

    def observe(self, step: Step) -> None:
        """Keep each emitted token with the state it was chosen from."""
        self.states += step.features
        self.tokens += step.emitted
        self.novel += [at >= len(step.path) for at in range(len(step.emitted))]
        self.inner.observe(step)


def collect(cases: Sequence[Case], engine: LocalEngine[Any], folder: Path) -> Iterator[str]:
    """Decode the cases greedily, one file of examples each; yields each case's id when it is done.

    What is there already isn't made again. Cases that the engine refuses are left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        path = folder / f"{hashlib.sha256(case.id.encode()).hexdigest()[:16]}.safetensors"
        if not path.is_file():
            try:
                _write(path, _decode(case, engine))
            except ApplyError:
                continue
        yield case.id


def load(folder: Path) -> list[Examples]:
    """All examples, in an order that is the same every time."""
    from safetensors.torch import load_file

    found = [load_file(path) for path in sorted(folder.glob("*.safetensors"))]
    return [Examples(one["states"].float(), one["tokens"], one["novel"]) for one in found]


def _decode(case: Case, engine: LocalEngine[Any]) -> Recorder:
    recorders: list[Recorder] = []

    def recorded(*given: Any) -> Recorder:
        recorders.append(Recorder(engine.proposer(*given)))
        return recorders[-1]

    watched = LocalEngine(engine.model, recorded, engine.max_new, engine.max_file)
    prompt = watched.prompt(request_of(case))
    with watched.session(prompt, watched.answer(prompt), Event()) as session:
        for work in (prefill, decode):
            for _ in work(session, engine.model.target):
                pass
    return recorders[0]


def _write(path: Path, recorder: Recorder) -> None:
    import torch
    from safetensors.torch import save_file

    made = path.with_suffix(".new")
    save_file(
        {
            "states": torch.stack([torch.as_tensor(state) for state in recorder.states]).bfloat16(),
            "tokens": torch.tensor(recorder.tokens),
            "novel": torch.tensor(recorder.novel),
        },
        made,
    )
    made.replace(path)
