"""An engine that edits the selected lines and can't touch any others.

The rest of the document is neither shown to the model nor written by it. Must not know how the
lines are edited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event

from apply_server.edits import LineEdit, apply_edits
from apply_server.engine.base import Delta, Done, Engine, EngineEvent, Preview, Verified
from apply_server.request import EditRequest


@dataclass(frozen=True, slots=True)
class SelectedEngine:
    """Gives `engine` the selection as a document of its own, and its edits their place back."""

    engine: Engine

    def run(self, request: EditRequest, cancel: Event) -> Iterator[EngineEvent]:
        """See Engine.run."""
        if request.selection is None:
            yield from self.engine.run(request, cancel)
            return
        first, _ = request.selection
        for event in self.engine.run(request.part(), cancel):
            yield _placed(event, request, first)


def _placed(event: EngineEvent, request: EditRequest, first: int) -> EngineEvent:
    match event:
        case Preview():
            return Preview(moved(event.edits, first))
        case Verified():
            return replace(
                event,
                original_line=event.original_line + first,
                result_line=event.result_line + first,
                edits=moved(event.edits, first),
            )
        case Delta():
            start, end = event.from_line + first, event.to_line + first
            return Delta(start, end, moved(event.edits, first))
        case Done():
            edits = moved(event.edits, first)
            return replace(event, edits=edits, text=apply_edits(request.document, edits))
        case _:
            return event


def moved(edits: Sequence[LineEdit], by: int) -> tuple[LineEdit, ...]:
    """The edits as many lines further down."""
    return tuple(LineEdit(edit.start + by, edit.end + by, edit.lines) for edit in edits)
