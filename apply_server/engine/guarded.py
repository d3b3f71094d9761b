"""An engine whose results have passed the guards. Must not know how a result came about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Event

from apply_server import guards
from apply_server.config import DEFAULT_REMOVAL_RATIO
from apply_server.document import Document
from apply_server.edits import unified_diff
from apply_server.engine.base import Done, Engine, EngineEvent
from apply_server.engine.merging import predict
from apply_server.errors import ApplyError
from apply_server.request import EditRequest


@dataclass(frozen=True, slots=True)
class GuardedEngine:
    """Checks what `engine` made.

    `allowed` names the guards that the user overrides, `max_removal` is the share of a file's
    characters that may go unasked.
    """

    engine: Engine
    allowed: frozenset[str] = frozenset()
    max_removal: float = DEFAULT_REMOVAL_RATIO

    def run(self, request: EditRequest, cancel: Event) -> Iterator[EngineEvent]:
        """See Engine.run. Raises GuardBlocked instead of a result that looks wrong."""
        for event in self.engine.run(request, cancel):
            yield self._guarded(request, event) if isinstance(event, Done) else event

    def _guarded(self, request: EditRequest, done: Done) -> Done:
        findings = guards.check(self._given(request, done))
        diff = unified_diff(request.document, done.text, request.name) if findings else ""
        told = guards.enforce(findings, self.allowed, diff)
        return replace(done, warnings=(*done.warnings, *(finding.message for finding in told)))

    def _given(self, request: EditRequest, done: Done) -> guards.GuardInput:
        return guards.GuardInput(
            original=request.document.line_texts(),
            final=Document.from_text(done.text).line_texts(),
            edits=done.edits,
            instruction=request.instruction,
            snippet=request.snippet_view,
            language=request.language_id,
            hunks=_hunks(request),
            max_removal=self.max_removal,
        )


def _hunks(request: EditRequest) -> tuple[tuple[int, int], ...] | None:
    """What the snippet's merge replaces, where it is sure of it."""
    try:
        merged = predict(request.part())
    except ApplyError:
        return None
    first = request.selection[0] if request.selection else 0
    spans = tuple((hunk.start + first, hunk.end + first) for hunk in merged.hunks)
    return spans if merged.unambiguous else None
