"""A job's progress: the editor's bar, and partial results for clients that show them.

Events come on workers' threads; they are put into words there, and sent by the event loop. Must not
know how a job is run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lsprotocol import types

from apply_server import models
from apply_server.document import PositionEncoding
from apply_server.edits import LineEdit, apply_edits
from apply_server.engine.base import Decoding, Delta, EngineEvent, Prefilling, Preview, Verified
from apply_server.errors import Cancelled
from apply_server.lsp import convert, protocol
from apply_server.lsp.client import Client
from apply_server.lsp.documents import Snapshot
from apply_server.lsp.jobs import Job
from apply_server.lsp.protocol import Token, to_json

_STAGES = {"fetch": "Fetching the model", "verify": "Verifying it", "convert": "Converting it"}


@dataclass(slots=True)
class WorkDone:
    """A work-done progress: begun once, ended once, silent without a token.

    A token of our own has to be made known to the client first; until it is `known` nothing is
    shown under it.
    """

    client: Client
    token: Token | None
    known: bool = True
    _begin: dict[str, object] | None = None
    _ended: bool = False

    def begin(self, title: str, message: str) -> None:
        """Show it, as soon as the token is known."""
        self._begin = {"kind": "begin", "title": title, "message": message}
        self._begin |= {"cancellable": True, "percentage": 0}
        if self.known:
            self._send(self._begin)

    async def make_known(self) -> None:
        """Ask the client to take our token; without its consent there is no progress."""
        params = types.WorkDoneProgressCreateParams(self.token or "")
        await self.client.ask(types.WINDOW_WORK_DONE_PROGRESS_CREATE, params)
        self.known = True
        if self._begin is not None and not self._ended:
            self._send(self._begin)

    def report(self, message: str, percentage: int | None) -> None:
        """Move it on."""
        if self.known and not self._ended:
            value = {"kind": "report", "message": message}
            self._send(value | ({} if percentage is None else {"percentage": percentage}), True)

    def end(self, message: str) -> None:
        """Take it away."""
        if self.known and not self._ended:
            self._send({"kind": "end", "message": message})
        self._ended = True

    def _send(self, value: dict[str, object], spare: bool = False) -> None:
        if self.token is not None:
            self.client.progress(self.token, value, spare=spare)


@dataclass(slots=True)
class Marks:
    """When things came that users wait for, in milliseconds from the request."""

    started: float = field(default_factory=time.perf_counter)
    preview: float | None = None
    verified: float | None = None

    def now(self) -> float:
        """Milliseconds since the request."""
        return (time.perf_counter() - self.started) * 1000


@dataclass(slots=True)
class Reporter:
    """Turns one job's events into messages.

    `shown` is what the edits are of; None where the editor's text has other lines. `on_model`
    is called (on the loop) once the model begins to work, as time limits count from there.
    """

    client: Client
    job: Job
    work: WorkDone
    partial: Token | None
    previews: bool
    encoding: PositionEncoding
    on_model: Callable[[], None]
    shown: Snapshot | None = None
    marks: Marks = field(default_factory=Marks)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _working: bool = False

    def handle(self, event: EngineEvent) -> None:
        """Called on the workers' threads, one event at a time."""
        match event:
            case Preview():
                self._preview(event)
            case Prefilling():
                self._at_work(f"Reading {event.done} of {event.total} tokens", None)
            case Decoding():
                message = f"{event.share:.0%} · {event.tokens_per_s:.0f} tokens/s"
                self._at_work(message, round(100 * event.share))
            case Verified():
                self._verified(event)
            case Delta():
                self._delta(event)

    def waits(self) -> None:
        """The model is being loaded or busy with another document."""
        self.work.report("Waiting for the model, which is busy", None)

    def model_report(self) -> models.Report:
        """Where fetching and loading a model is reported; a cancelled job ends it."""
        return models.Report(self._fetched, self._noticed)

    def _preview(self, event: Preview) -> None:
        if self.previews and self.shown is not None and event.edits:
            self._send_partial(protocol.Preview(self._edits(self.shown, event.edits)))
            self.marks.preview = self.marks.now()

    def _verified(self, event: Verified) -> None:
        if self.shown is not None:
            value = protocol.Verified(
                event.original_line,
                event.result_line,
                event.passes,
                round(event.tokens_per_s, 2),
                round(event.copied_share, 4),
                round(event.share, 4),
            )
            self._send_partial(value, spare=True)
        self.marks.verified = self.marks.verified or self.marks.now()

    def _delta(self, event: Delta) -> None:
        if self.shown is not None:
            edits = self._edits(self.shown, event.edits)
            self._send_partial(protocol.Delta(event.from_line, event.to_line, edits))

    def _edits(self, shown: Snapshot, edits: Sequence[LineEdit]) -> tuple[protocol.TextEdit, ...]:
        body = apply_edits(shown.document(), edits)
        return convert.text_edits(shown.replacements(body, self.encoding))

    def _at_work(self, message: str, percentage: int | None) -> None:
        if not self._working:
            self._working = True
            self._post(self.on_model)
        self._post(lambda: self.work.report(message, percentage))

    def _fetched(self, step: models.Progress) -> None:
        self._check_cancelled()
        percentage = round(100 * step.done / step.total) if step.total else None
        size = f" {step.done / 1e6:.0f} of {step.total / 1e6:.0f} MB" if step.total else ""
        self._post(lambda: self.work.report(f"{_STAGES[step.stage]}{size}", percentage))

    def _noticed(self, sentence: str) -> None:
        self._check_cancelled()
        self._post(lambda: self.client.log(sentence))
        self._post(lambda: self.work.report(sentence, None))

    def _check_cancelled(self) -> None:
        if self.job.cancel.is_set():
            raise Cancelled("Cancelled. Nothing was changed.")

    def _send_partial(self, value: object, *, spare: bool = False) -> None:
        token = self.partial
        if token is not None:
            content = to_json(value)
            self._post(lambda: self.client.progress(token, content, spare=spare))

    def _post(self, send: Callable[[], None]) -> None:
        """On the loop's thread, unless the job has ended by then."""

        def if_running() -> None:
            if self.job.running:
                send()

        self._loop.call_soon_threadsafe(if_running)
