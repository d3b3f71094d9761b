"""The engine without a model, and the policy that says when a model is asked.

Must not know which model that would be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event

from apply_server.config import Verify
from apply_server.edits import LineEdit, rewrite
from apply_server.engine.base import Done, Engine, EngineEvent, ModelNeeded, Preview
from apply_server.engine.partial import Shown
from apply_server.errors import AmbiguousTarget, AnchorNotFound, InvalidRequest, Remedy
from apply_server.merge import Merge, merge
from apply_server.request import EditRequest
from apply_server.snippet import parse_snippet


def predict(request: EditRequest) -> Merge:
    """The deterministic splice of the request's snippet into its document.

    Raises AmbiguousTarget or AnchorNotFound where there is no one place for it, and InvalidRequest
    where there is no snippet.
    """
    if not request.snippet.strip():
        raise InvalidRequest(
            "An instruction needs the model, a snippet may do without.",
            remedy=Remedy("verify", (str(Verify.ALWAYS),), "asks the model."),
        )
    lines = request.document.line_texts()
    language = request.language_id
    return merge(lines, parse_snippet(request.snippet, lines, language), language)


@dataclass(frozen=True, slots=True)
class PolicyEngine:
    """Asks `model` as `verify` says; loads it only then."""

    verify: Verify
    model: Callable[[], Engine]

    def run(self, request: EditRequest, cancel: Event) -> Iterator[EngineEvent]:
        """See Engine.run."""
        merged = self._predicted(request)
        if merged is not None and self.verify is not Verify.ALWAYS:
            yield _spliced(request, merged)
            return
        shown = Shown(request.document.line_texts())
        if merged is not None:
            shown.preview, _ = _rewritten(request, merged)
            yield Preview(tuple(shown.preview))
        yield ModelNeeded()
        for event in self.model().run(request, cancel):
            yield from shown.follow(event)

    def _predicted(self, request: EditRequest) -> Merge | None:
        """The merge where it is sure; None where the model is to decide without it."""
        if self.verify is Verify.NEVER:
            return _sure(predict(request))
        try:
            merged = predict(request)
        except (AmbiguousTarget, AnchorNotFound, InvalidRequest):
            return None
        return merged if merged.unambiguous else None


def _sure(merged: Merge) -> Merge:
    """The merge, unless its place or meaning is in doubt; then AmbiguousTarget."""
    if merged.unambiguous:
        return merged
    least = min((hunk.confidence for hunk in merged.hunks), default=0.0)
    lines = [hunk.start + 1 for hunk in merged.hunks if hunk.confidence == least]
    reasons = " ".join(merged.warnings) or "The snippet fits the file in more than one way."
    raise AmbiguousTarget(
        f"{reasons} Nothing was changed; give the lines around the change.",
        {"lines": lines},
        Remedy("verify", (str(Verify.WHEN_AMBIGUOUS),), "lets the model decide."),
    )


def _spliced(request: EditRequest, merged: Merge) -> Done:
    edits, text = _rewritten(request, merged)
    return Done(edits, text, verified=False, warnings=merged.warnings)


def _rewritten(request: EditRequest, merged: Merge) -> tuple[tuple[LineEdit, ...], str]:
    return rewrite(request.document, "".join(f"{line}\n" for line in merged.lines))
