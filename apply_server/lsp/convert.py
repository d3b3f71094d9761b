"""Our values as LSP's and back. Must not know when anything is sent."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from apply_server import edits
from apply_server.config import EngineConfig, Verify
from apply_server.decode.sampling import Sampling
from apply_server.document import Document
from apply_server.engine.base import Done
from apply_server.lsp.protocol import ApplyOptions, Position, Range, Report, TextEdit
from apply_server.lsp.settings import Settings


def text_edits(changes: Iterable[edits.TextEdit]) -> tuple[TextEdit, ...]:
    """Edits in the negotiated encoding, for the wire."""
    return tuple(
        TextEdit(
            Range(
                Position(change.start.line, change.start.character),
                Position(change.end.line, change.end.character),
            ),
            change.new_text,
        )
        for change in changes
    )


def lines_of(place: Range | None) -> tuple[int, int] | None:
    """The lines (end exclusive) that a range touches; None for an empty range, which selects none.

    A range that ends before a line's first character leaves that line out.
    """
    if place is None or place.start == place.end:
        return None
    first, last = sorted((place.start, place.end), key=lambda at: (at.line, at.character))
    end = last.line + (last.character > 0)
    return max(first.line, 0), max(end, 0)


def change_range(change: types.TextDocumentContentChangeEvent) -> Range | None:
    """The range that a change replaces; None for the whole text."""
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return None
    return range_of(change.range)


def range_of(place: types.Range) -> Range:
    """A range from the wire."""
    start, end = (Position(at.line, at.character) for at in (place.start, place.end))
    return Range(start, end)


def engine_config(settings: Settings, options: ApplyOptions) -> EngineConfig:
    """What a request asks for, as configured."""
    return EngineConfig(
        model=settings.model,
        device=settings.device,
        dtype=settings.dtype,
        threads=settings.threads,
        profile=settings.profile,
        proposer=settings.proposer,
        draft_model=settings.draft_model,
        sampling=Sampling(
            settings.temperature,
            settings.top_p,
            settings.top_k,
            settings.seed,
            settings.repetition_penalty,
        ),
        verify=options.verify or Verify(settings.verify),
        allowed_guards=frozenset(options.allowed_guards),
        max_file=settings.max_file_tokens or None,
        max_removal=settings.max_removal_ratio,
        prefix_cache=settings.prefix_cache,
    )


def report(done: Done, document: Document, duration_s: float) -> Report:
    """What `done` did to `document`."""
    added = sum(len(edit.lines) for edit in done.edits)
    removed = sum(edit.end - edit.start for edit in done.edits)
    lines = len(document.lines) + added - removed
    cost = done.report
    return Report(
        prompt_tokens=cost.prompt_tokens,
        cached_tokens=cost.cached_tokens,
        output_tokens=cost.output_tokens,
        target_passes=cost.target_passes,
        tokens_per_pass=round(cost.tokens_per_pass, 3),
        drafted_tokens=cost.drafted_tokens,
        accepted_tokens=cost.accepted_tokens,
        acceptance_rate=round(cost.acceptance_rate, 4),
        prefill_s=round(cost.prefill_s, 4),
        decode_s=round(cost.decode_s, 4),
        tokens_per_s=round(cost.tokens_per_s, 2),
        duration_ms=round(duration_s * 1000, 1),
        added=added,
        removed=removed,
        copied_share=round(1 - added / max(1, lines), 4),
        verified=done.verified,
        warnings=done.warnings,
    )
