"""The edits that are under way: one for each document, each stopped by whoever may stop it.

Used on the event loop's thread only. Must not know what a job does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

from apply_server.errors import ApplyError, Busy, Cancelled
from apply_server.lsp.documents import Snapshot
from apply_server.lsp.protocol import Token
from apply_server.lsp.uris import DocumentUri


@dataclass(slots=True, eq=False)
class Job:
    """One edit. `cancel` reaches the worker, `stopped` whoever waits for the result.

    `request` is the id of the request that asked for it, `token` its work-done token. `committed`:
    the result is on its way into the document, and can't be stopped any more. `snapshot`: what the
    edit is of, once that has been read.
    """

    uri: DocumentUri
    request: Token | None = None
    token: Token | None = None
    committed: bool = False
    snapshot: Snapshot | None = None
    cancel: Event = field(default_factory=Event)
    stopped: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def running(self) -> bool:
        """Whether its events are still of interest."""
        return not self.stopped.done()

    def is_of(self, opened: Snapshot) -> bool:
        """Whether a buffer, just opened, is the text that this job is about."""
        read = self.snapshot
        return read is None or (read.text == opened.text and read.version in (None, opened.version))

    def stop(self, error: ApplyError) -> bool:
        """End it with this error, unless that is too late."""
        if not self.running or self.committed:
            return False
        self.cancel.set()
        self.stopped.set_exception(error)
        return True


@dataclass(slots=True)
class Jobs:
    """All jobs of one client."""

    _jobs: dict[DocumentUri, Job] = field(default_factory=dict)

    def start(self, uri: DocumentUri, request: Token | None, token: Token | None) -> Job:
        """Raises Busy where the document has a job already."""
        if uri in self._jobs:
            raise Busy(
                f"Another edit is running in {uri.name}. Wait for it, or cancel it.",
                {"uri": uri.text},
            )
        job = self._jobs[uri] = Job(uri, request, token)
        return job

    @property
    def any(self) -> bool:
        """Whether an edit is under way."""
        return bool(self._jobs)

    def finish(self, job: Job) -> None:
        """It has ended, however it did."""
        job.cancel.set()
        if job.running:
            job.stopped.set_result(None)
        else:
            job.stopped.exception()  # it has been seen
        del self._jobs[job.uri]

    def stop_document(self, uri: DocumentUri, error: ApplyError) -> int:
        """Stop the document's job; how many there were."""
        return self._stop(lambda job: job.uri == uri, error)

    def stop_others(self, opened: Snapshot, error: ApplyError) -> int:
        """Stop the document's job unless the buffer, just opened, is what the job is about.

        Clients send a document twice, or after the first request for it, where they have only
        just connected.
        """
        return self._stop(lambda job: job.uri == opened.uri and not job.is_of(opened), error)

    def stop_request(self, request: Token) -> bool:
        """Stop the job that a request asked for; whether it has one, stopped or not."""
        self._stop(lambda job: job.request == request, cancelled())
        return any(job.request == request for job in self._jobs.values())

    def stop_token(self, token: Token) -> int:
        """Stop the job whose progress is shown under this token."""
        return self._stop(lambda job: job.token == token, cancelled())

    def stop_all(self) -> int:
        """Stop every job."""
        return self._stop(lambda job: True, cancelled())

    def _stop(self, wanted: Callable[[Job], bool], error: ApplyError) -> int:
        return sum(job.stop(error) for job in self._jobs.values() if wanted(job))


def cancelled() -> Cancelled:
    """What a stopped job's request is answered with."""
    return Cancelled("Cancelled. Nothing was changed.")
