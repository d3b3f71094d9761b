"""What a model makes of answers to edits: its states, its own choices, and where heads are asked.

An answer is known beforehand, so one pass reads a block of it: ten times as fast as decoding. What
the model would choose after each prefix of it is what heads are to guess. Each answer is a file, so
that an interrupted run goes on where it stopped. Must not know how heads are trained.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from apply_server.config import EngineConfig
from apply_server.decode.draft import Draft, Proposer, Step
from apply_server.decode.speedup import CostTable
from apply_server.decode.target import TargetModel
from apply_server.document import Document
from apply_server.engine.build import scripted_engine
from apply_server.engine.local import LocalEngine
from apply_server.errors import ApplyError
from apply_server.prompt import answer_text
from apply_server.propose.build import DraftSources
from apply_server.propose.novel import confident
from apply_server.replay.cases import Case
from apply_server.replay.run import request_of
from apply_server.request import EditRequest
from apply_server.tokens import Tokenizer
from apply_server.view import ModelView

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 128
"""Tokens of an answer that are read in one pass: as many as of a prompt."""

MARGIN = 8
"""So many tokens are read after the last place where heads are asked: no head looks farther."""


@dataclass(frozen=True, slots=True)
class Examples:
    """One answer, row by row.

    `states` [n, hidden] is what the output matrix was given before each token of `tokens` [n], and
    `choices` [n] what the model itself would have said there (negative: too close to call). `asked`
    [n] tells after which tokens copying knows nothing, so that heads are asked what comes next.
    """

    states: Tensor
    tokens: Tensor
    choices: Tensor
    asked: Tensor


@dataclass(slots=True)
class _Places:
    """Passes everything on, and keeps where the inner proposer is at a loss."""

    inner: Proposer
    found: list[int] = field(default_factory=list)

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        """The inner proposer's."""
        draft = self.inner.propose(context, limit)
        if context and not confident(draft):
            self.found.append(len(context) - 1)
        return draft

    def observe(self, step: Step) -> None:
        """The inner proposer's."""
        self.inner.observe(step)


def collect(cases: Sequence[Case], engine: LocalEngine[Any], folder: Path) -> Iterator[str]:
    """Read the cases' answers, one file of examples each; yields each case's id when it is done.

    What is there already isn't made again. Cases that the engine refuses, and those where heads are
    never asked, are left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        path = folder / f"{hashlib.sha256(case.id.encode()).hexdigest()[:16]}.safetensors"
        if not path.is_file():
            try:
                found = read(case, engine)
            except ApplyError:
                continue
            if found is None:
                continue
            _write(path, found)
        yield case.id


def load(folder: Path) -> list[Examples]:
    """All examples, in an order that is the same every time."""
    from safetensors.torch import load_file

    found = [load_file(path) for path in sorted(folder.glob("*.safetensors"))]
    return [
        Examples(one["states"].float(), one["tokens"], one["choices"], one["asked"])
        for one in found
    ]


def read(case: Case, engine: LocalEngine[Any]) -> Examples | None:
    """Examples from one case's expected answer; None where all of it can be copied.

    Raises ApplyError where the engine refuses the case.
    """
    import torch

    request, expected = request_of(case), Document.from_bytes(case.expected)
    places = _asked_places(request, expected, engine.model.tokenizer)
    if not places:
        return None
    prompt = engine.prompt(request)
    text = ModelView.of(request.document).answer(expected.line_texts())
    answer = engine.model.tokenizer.encode(answer_text(text, prompt.closing))
    answer = answer[: places[-1] + MARGIN]
    asked = torch.zeros(len(answer), dtype=torch.bool)
    asked[places] = True
    return _teach(engine.model.target, prompt.tokens, answer, asked)


def _asked_places(request: EditRequest, expected: Document, tokenizer: Tokenizer) -> list[int]:
    """After which of the answer's tokens copying knows nothing, found by replaying it."""
    watched: list[_Places] = []
    replayed = scripted_engine(tokenizer, request, expected, EngineConfig("scripted"))

    def proposer(sources: DraftSources, cost: CostTable) -> _Places:
        watched.append(_Places(replayed.proposer(sources, cost)))
        return watched[-1]

    for _ in replace(replayed, proposer=proposer).run(request, Event()):
        pass
    return watched[0].found


def _teach(
    target: TargetModel[Any], prompt: Sequence[int], answer: Sequence[int], asked: Tensor
) -> Examples:
    import torch

    states: list[Tensor] = []
    choices: list[int] = []
    slot = target.open(prompt, len(answer))
    try:
        for _ in target.prefill(slot):
            pass
        while len(states) < len(answer):
            block = answer[len(states) : len(states) + BLOCK]
            (verdict,) = target.verify([(slot, Draft.chain(block[:-1]))])
            # Fewer rows than tokens where the first choice was too close to call in a block.
            assert verdict.features is not None, "a model tells its states"
            rows = [torch.as_tensor(state) for state in verdict.features]
            target.commit(slot, range(len(rows) - 1), block[len(rows) - 1])
            states += rows
            choices += verdict.choices[: len(rows)]
    finally:
        target.close(slot)
    return Examples(torch.stack(states), torch.tensor(answer), torch.tensor(choices), asked)


def _write(path: Path, examples: Examples) -> None:
    from safetensors.torch import save_file

    made = path.with_suffix(".new")
    tensors = {
        "states": examples.states.bfloat16(),
        "tokens": examples.tokens,
        "choices": examples.choices,
        "asked": examples.asked,
    }
    save_file(tensors, made)
    made.replace(path)
