"""Run cases through an engine and measure what each cost. Must not know how results are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from threading import Event

from rapidfuzz.distance import Indel

from apply_server.document import Document
from apply_server.engine.base import Done, Engine, Report
from apply_server.errors import ApplyError, Cancelled
from apply_server.replay.cases import Case
from apply_server.request import EditRequest

EngineFor = Callable[[EditRequest, Document], Engine]
"""The engine for one case, given the request and the expected document."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The same case decoded plainly, in the same run."""

    plain_passes: int
    plain_decode_s: float
    decode_speedup: float
    same_output: bool


@dataclass(frozen=True, slots=True)
class Result:
    """One case's outcome. `error` is an error code where the edit was refused, else ""."""

    id: str
    exact_match: bool
    similarity: float
    report: Report = field(default_factory=Report)
    verified: bool = True
    error: str = ""
    message: str = ""
    baseline: Baseline | None = None

    def to_json(self) -> dict[str, object]:
        """One row of the report."""
        row: dict[str, object] = {
            "id": self.id,
            "exact_match": self.exact_match,
            "similarity": round(self.similarity, 4),
            "verified": self.verified,
            **self.report.to_json(),
        }
        if self.error:
            row |= {"error": self.error, "message": self.message}
        return row | (asdict(self.baseline) if self.baseline else {})


def replay(
    cases: Iterable[Case], engine_for: EngineFor, baseline: EngineFor | None = None
) -> Iterator[Result]:
    """Results in the order of the cases, each as soon as it is there."""
    for case in cases:
        yield _replay(case, engine_for, baseline)


def request_of(case: Case) -> EditRequest:
    """The request that a case makes. Raises ApplyError where it makes none that works."""
    return EditRequest(
        Document.from_bytes(case.original),
        case.file_name,
        case.instruction or "",
        case.snippet or "",
        case.language,
    )


def _replay(case: Case, engine_for: EngineFor, baseline: EngineFor | None) -> Result:
    try:
        request = request_of(case)
        expected = Document.from_bytes(case.expected)
        done = _finish(engine_for(request, expected), request)
        plain = _finish(baseline(request, expected), request) if baseline else None
        data = request.document.encode(done.text)
    except Cancelled:
        raise
    except ApplyError as error:
        return Result(case.id, False, 0.0, error=error.code, message=error.message)
    return Result(
        case.id,
        data == case.expected,
        Indel.normalized_similarity(done.text, expected.text),
        done.report,
        done.verified,
        baseline=_compare(done, plain) if plain else None,
    )


def _finish(engine: Engine, request: EditRequest) -> Done:
    *_, last = engine.run(request, Event())
    assert isinstance(last, Done), "an engine's last event is Done"
    return last


def _compare(done: Done, plain: Done) -> Baseline:
    ours = done.report.decode_s
    return Baseline(
        plain.report.target_passes,
        plain.report.decode_s,
        plain.report.decode_s / ours if ours else 0.0,
        plain.output == done.output,
    )
