"""One edit from its parameters to its result: what both the request and the command do.

Must not know how a result is answered or applied.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, TypeVar

from apply_server import models
from apply_server.config import EngineConfig, Verify
from apply_server.document import Document
from apply_server.engine.base import Done, Engine, Prefilling
from apply_server.engine.provider import Source, provide
from apply_server.errors import ApplyError, TruncatedOutput
from apply_server.languages import language_of
from apply_server.lsp import convert
from apply_server.lsp.client import Client
from apply_server.lsp.documents import Documents, OpenDocument, Snapshot, changed, read_closed
from apply_server.lsp.jobs import Job, Jobs
from apply_server.lsp.progress import Reporter, WorkDone
from apply_server.lsp.protocol import (
    ApplyOptions,
    ApplyParams,
    Report,
    TextDocument,
    TextEdit,
    Token,
)
from apply_server.lsp.settings import Settings
from apply_server.lsp.uris import DocumentUri
from apply_server.lsp.warming import Warming
from apply_server.lsp.workers import Workers
from apply_server.metrics import Metrics, RequestClass, RequestRecord
from apply_server.request import EditRequest
from apply_server.snippet import parse_snippet

ResultT = TypeVar("ResultT")
# How long after a request its document may be opened, where there is nothing on disk to edit.
_OPENING_S = 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """A computed edit, not applied yet. `edits` are of `snapshot`; `text` is the text they make."""

    snapshot: Snapshot
    edits: tuple[TextEdit, ...]
    text: str
    report: Report


@dataclass(slots=True)
class Backend:
    """What all clients of a process share."""

    sources: Callable[[str], Source]
    workers: Workers = field(default_factory=Workers)
    metrics: Metrics = field(default_factory=Metrics)
    warming: Warming = field(init=False)

    def __post_init__(self) -> None:
        self.warming = Warming(self.workers)

    def engine(self, config: EngineConfig, target: str, reporter: Reporter) -> Engine:
        """The engine for a request. Raises InvalidRequest for settings that can't work."""
        return provide(self.sources(target), config, reporter.model_report())


@dataclass(slots=True)
class Service:
    """Edits for one client."""

    backend: Backend
    client: Client
    settings: Settings = field(default_factory=Settings)
    documents: Documents = field(default_factory=Documents)
    jobs: Jobs = field(default_factory=Jobs)

    async def apply(
        self,
        params: ApplyParams,
        request: Token | None,
        work: WorkDone,
        finish: Callable[[Job, Outcome], Coroutine[Any, Any, ResultT]],
    ) -> ResultT:
        """Compute the edit and hand it to `finish`; the document has a job until that is done.

        Raises an ApplyError: then nothing has changed.
        """
        uri = DocumentUri.parse(params.text_document.uri)
        uri.check_writable()
        opened = self.documents.check_version(uri, params.text_document.version)
        self.backend.warming.stop()
        job = self.jobs.start(uri, request, work.token)
        run = _Run(self, params, job, opened, self._reporter(params, job, work))
        try:
            work.begin("Apply edit", uri.name)
            outcome = await run.outcome()
            result = await finish(job, outcome)
            run.record("applied" if outcome.edits else "unchanged", outcome.report)
            return result
        except ApplyError as error:
            run.record(error.code)
            raise
        except asyncio.CancelledError:
            run.record("Cancelled")
            raise
        finally:
            work.end(run.state)
            self.jobs.finish(job)

    async def prepare(self, document: TextDocument) -> int:
        """Compute ahead what an edit of an open document will need, while nobody wants the model.

        How many tokens of its prompt are known in the end. 0 where there is nothing to do: another
        edit or file came first, the document isn't open, no model decides, or none is here yet.
        """
        settings = self.settings
        opened = self.documents.find(DocumentUri.parse(document.uri))
        idle = settings.verify == Verify.NEVER or self.jobs.any or not _here(settings)
        if opened is None or idle:
            return 0
        snapshot = opened.snapshot()
        config = convert.engine_config(settings, ApplyOptions())
        source = self.backend.sources(settings.target)

        def ahead(cancel: Event) -> Iterator[Prefilling]:
            engine = source(config, models.Report())
            language = snapshot.language or language_of(snapshot.uri.name)
            return engine.warm(snapshot.document(), snapshot.uri.name, language, cancel)

        return await self.backend.warming.start(ahead)

    def _reporter(self, params: ApplyParams, job: Job, work: WorkDone) -> Reporter:
        def start_clock() -> None:
            limit = self.settings.timeout_ms
            if limit:
                asyncio.get_running_loop().call_later(limit / 1000, job.stop, _timed_out(limit))

        return Reporter(
            self.client,
            job,
            work,
            params.partial_result_token,
            self.settings.preview == "always",
            self.documents.encoding,
            start_clock,
        )


@dataclass(slots=True)
class _Run:
    """One job's way through the service."""

    service: Service
    params: ApplyParams
    job: Job
    opened: OpenDocument | None
    reporter: Reporter
    state: str = "failed"
    _class: RequestClass | None = None

    async def outcome(self) -> Outcome:
        """The edit, unless the job is stopped before: then the error it was stopped with."""
        work = asyncio.ensure_future(self._compute())
        work.add_done_callback(_forget)
        either: list[asyncio.Future[Any]] = [work, self.job.stopped]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if self.job.stopped.done():
            # The worker notices within one pass; nobody waits for it.
            self.job.stopped.result()
        return work.result()

    async def _compute(self) -> Outcome:
        workers, settings = self.service.backend.workers, self.service.settings
        snapshot = self.job.snapshot = await self._read()
        request = await workers.aside(self._request, snapshot)
        config = convert.engine_config(settings, self.params.options)
        engine = self.service.backend.engine(config, settings.target, self.reporter)
        events = engine.run(request, self.job.cancel)
        reporter = self.reporter
        done = await workers.run(events, self.job.cancel, reporter.handle, reporter.waits)
        outcome = await workers.aside(self._outcome, snapshot, request.document, done)
        if self.opened is None:
            await workers.aside(self._check_closed, snapshot)
        return outcome

    async def _read(self) -> Snapshot:
        """The buffer, else the file; a buffer that is opened meanwhile beats it."""
        service, uri = self.service, self.job.uri
        if self.opened is not None:
            return self.opened.snapshot()
        reading = service.backend.workers.aside(read_closed, uri, service.settings.encoding)
        closed = asyncio.ensure_future(reading)
        await asyncio.wait([closed])
        if closed.exception() or closed.result().new:
            # Clients that have only just connected may ask first and open it then.
            await service.documents.until_open(uri, _OPENING_S)
        self.opened = service.documents.check_version(uri, self.params.text_document.version)
        return closed.result() if self.opened is None else self.opened.snapshot()

    def _request(self, snapshot: Snapshot) -> EditRequest:
        document = snapshot.document()
        selection = convert.lines_of(self.params.selection)
        if (source := convert.lines_of(self.params.edit_range)) is not None:
            document, selection = _without(document, source, selection)
        else:
            self.reporter.shown = snapshot
        request = EditRequest(
            document,
            self.job.uri.name,
            self.params.instruction,
            self.params.snippet,
            snapshot.language,
            selection,
        )
        self._class = RequestClass.of(_dialect(request), len(document.lines))
        return request

    def _outcome(self, snapshot: Snapshot, edited: Document, done: Done) -> Outcome:
        encoding = self.service.documents.encoding
        changes = convert.text_edits(snapshot.replacements(done.text, encoding))
        report = convert.report(done, edited, self.reporter.marks.now() / 1000)
        return Outcome(snapshot, changes, snapshot.with_body(done.text), report)

    def _check_closed(self, snapshot: Snapshot) -> None:
        now = read_closed(snapshot.uri, self.service.settings.encoding)
        if (now.text, now.new) != (snapshot.text, snapshot.new):
            raise changed(snapshot.uri)

    def record(self, state: str, report: Report | None = None) -> None:
        """Count the request; `state` is also what the progress ends with."""
        self.state = state
        marks = self.reporter.marks
        record = RequestRecord(state, preview_ms=marks.preview, verified_ms=marks.verified)
        if report is not None:
            record = replace(
                record,
                drafted_tokens=report.drafted_tokens,
                accepted_tokens=report.accepted_tokens,
                output_tokens=report.output_tokens,
                target_passes=report.target_passes,
                last_ms=marks.now(),
            )
        if self._class is not None:
            self.service.backend.metrics.add(self._class, record)


def _timed_out(limit_ms: int) -> TruncatedOutput:
    return TruncatedOutput(
        f"The edit took longer than {limit_ms} ms (applyEdit.timeoutMs) and was stopped. "
        "Nothing was changed.",
        {"timeoutMs": limit_ms},
    )


def _forget(work: asyncio.Future[Any]) -> None:
    """Whoever stopped waiting for it has been told why."""
    with contextlib.suppress(asyncio.CancelledError):
        work.exception()


def _without(
    document: Document, lines: tuple[int, int], selection: tuple[int, int] | None
) -> tuple[Document, tuple[int, int] | None]:
    """The document without these lines, and the selection in what is left of it."""
    first, end = lines
    kept = (*document.lines[:first], *document.lines[end:])
    rest = Document.from_text("".join(line.text + line.eol for line in kept))
    if selection is None:
        return rest, None
    start, stop = (at - max(0, min(at, end) - first) for at in selection)
    return rest, (start, stop) if start < stop else None


def _dialect(request: EditRequest) -> str:
    if not request.snippet.strip():
        return "instruction"
    try:
        lines = request.document.line_texts()
        return parse_snippet(request.snippet, lines, request.language_id).dialect
    except ApplyError:
        return "unknown"


def _here(settings: Settings) -> bool:
    """Whether the model needs no fetching: that is for a request to do, where it is shown."""
    try:
        return bool(settings.target) or models.tokenizer_path(settings.model) is not None
    except ApplyError:
        return False
