"""Our own modes, and the jobs for all modes, taken from the engine that users get.

Must not know the peers or what is reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from threading import Event
from typing import TypeVar

from apply_server.bench.runs import Job, Pass, Run, Runner
from apply_server.decode.loop import decode, prefill
from apply_server.decode.session import Finish, StopRule
from apply_server.document import Document
from apply_server.engine.local import LocalEngine
from apply_server.errors import ApplyError
from apply_server.prompt import Prompt, answer_text
from apply_server.replay.cases import Case
from apply_server.replay.run import request_of
from apply_server.request import EditRequest
from apply_server.view import ModelView

SlotT = TypeVar("SlotT")


@dataclass(frozen=True, slots=True)
class Refused:
    """A case that no mode is asked to do, and why."""

    case: str
    error: ApplyError


def jobs_of(
    cases: Iterable[Case], engine: LocalEngine[SlotT], min_output: int
) -> Iterator[Job | Refused]:
    """A job for each case whose expected answer has at least `min_output` tokens."""
    for case in cases:
        try:
            job = _job(case, engine)
        except ApplyError as error:
            yield Refused(case.id, error)
            continue
        if len(job.expected) >= min_output:
            yield job


def engine_runner(engine: LocalEngine[SlotT]) -> Runner:
    """Runs jobs through the engine's own sessions. An engine that drafts nothing is the plain mode.

    The edit is not looked at: a model that answers badly still decodes at its speed.
    """

    def run(job: Job) -> Run:
        prompt = engine.prompt(job.request)
        started = time.perf_counter()
        with engine.session(prompt, job.stop(), Event()) as session:
            ready_s = time.perf_counter() - started  # merging and indexing
            for _ in prefill(session, engine.model.target):
                pass
            steps = decode(session, engine.model.target)
            passes = tuple(Pass(len(step.draft), len(step.emitted)) for step in steps)
        return Run(
            tuple(session.output),
            passes,
            len(prompt.tokens),
            session.counters.prefill_s,
            ready_s + session.counters.decode_s,
            session.finish is Finish.STOPPED,
            session.counters.drafted_by,
            session.counters.accepted_by,
            session.counters.propose_s,
        )

    return run


def _job(case: Case, engine: LocalEngine[SlotT]) -> Job:
    request = request_of(case)
    prompt = engine.prompt(request)
    limit = engine.limit(prompt)
    engine.model.target.close(engine.model.target.open(prompt.tokens, limit))  # does it fit?
    expected = _expected(case, request, prompt, engine)
    return Job(case.id, request, prompt.tokens, limit, _stop(engine, prompt), expected)


def _stop(engine: LocalEngine[SlotT], prompt: Prompt) -> Callable[[], StopRule]:
    return lambda: engine.answer(prompt)


def _expected(
    case: Case, request: EditRequest, prompt: Prompt, engine: LocalEngine[SlotT]
) -> tuple[int, ...]:
    lines = Document.from_bytes(case.expected).line_texts()
    answer = answer_text(ModelView.of(request.document).answer(lines), prompt.closing)
    return tuple(engine.model.tokenizer.encode(answer))
