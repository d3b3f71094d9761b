"""The messages that this server adds to LSP: names, codes and shapes. Clients mirror this file.

A field `snake_case` is `snakeCase` on the wire. Must not know who sends a message, nor any library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal, TypeAlias

from apply_server.config import Verify

# Requests. CANCEL and PREPARE may be sent as notifications too.
APPLY = "applyEdit/apply"
CANCEL = "applyEdit/cancel"
PREPARE = "applyEdit/prepare"
STATS = "applyEdit/stats"

# Commands of workspace/executeCommand, each with its request's params as the only argument.
APPLY_COMMAND = "applyEdit.apply"
CANCEL_COMMAND = "applyEdit.cancel"
STATS_COMMAND = "applyEdit.stats"

# The section of the editor's configuration; see settings.py for what is in it.
SECTION = "applyEdit"

# JSON-RPC's numbers for our errors, by ApplyError code; all others are REQUEST_FAILED.
INVALID_PARAMS = -32602
REQUEST_CANCELLED = -32800
CONTENT_MODIFIED = -32801
REQUEST_FAILED = -32803
ERROR_NUMBERS: Mapping[str, int] = {
    "InvalidRequest": INVALID_PARAMS,
    "Cancelled": REQUEST_CANCELLED,
    "DocumentChanged": CONTENT_MODIFIED,
}

Token: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class Position:
    """LSP's: both from 0, `character` in code units of the negotiated position encoding."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class Range:
    """LSP's: `end` is exclusive."""

    start: Position
    end: Position


@dataclass(frozen=True, slots=True)
class TextEdit:
    """LSP's."""

    range: Range
    new_text: str


@dataclass(frozen=True, slots=True)
class TextDocument:
    """Which document. `version`: the one the client sees; None skips that check."""

    uri: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """For one request. `verify` None: as configured; `allowed_guards`: objections overridden."""

    verify: Verify | None = None
    allowed_guards: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApplyParams:
    """APPLY: an instruction, a snippet, or both.

    `selection` limits the edit to its lines; an empty range is no selection. `edit_range` names
    lines of the document that hold the edit itself; they are removed with it.
    """

    text_document: TextDocument
    instruction: str = ""
    snippet: str = ""
    selection: Range | None = None
    edit_range: Range | None = None
    options: ApplyOptions = field(default_factory=ApplyOptions)
    work_done_token: Token | None = None
    partial_result_token: Token | None = None


@dataclass(frozen=True, slots=True)
class PrepareResult:
    """PREPARE's answer: how many tokens of a prompt for this document needn't be computed again."""

    known_tokens: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a request did and cost. Times as their names say; `added` and `removed` are lines.

    `cached_tokens` of the prompt were known from earlier requests, or computed ahead.
    `copied_share` is the share (0 to 1) of the result's lines that stood in the original,
    `verified` whether the model decided every token.
    """

    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    target_passes: int
    tokens_per_pass: float
    drafted_tokens: int
    accepted_tokens: int
    acceptance_rate: float
    prefill_s: float
    decode_s: float
    tokens_per_s: float
    duration_ms: float
    added: int
    removed: int
    copied_share: float
    verified: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """APPLY's answer: edits of `version`, ascending and disjoint. The client applies them."""

    status: Literal["changed", "unchanged"]
    edits: tuple[TextEdit, ...]
    version: int | None
    report: Report


@dataclass(frozen=True, slots=True)
class CommandResult:
    """APPLY_COMMAND's answer, after the editor has applied the edit."""

    status: Literal["applied", "unchanged"]
    report: Report


@dataclass(frozen=True, slots=True)
class Preview:
    """Partial result: the merge's edits, which no model has seen. At once, where it is sure."""

    edits: tuple[TextEdit, ...]
    kind: Literal["preview"] = "preview"


@dataclass(frozen=True, slots=True)
class Verified:
    """Partial result: up to which line (exclusive) of either text the model has confirmed it.

    `passes` and `tokens_per_s` so far; `copied_share` of the lines confirmed; `share` (0 to 1) of
    the work that is done.
    """

    original_line: int
    result_line: int
    passes: int
    tokens_per_s: float
    copied_share: float
    share: float
    kind: Literal["verified"] = "verified"


@dataclass(frozen=True, slots=True)
class Delta:
    """Partial result: the decided edits of the original's lines `from_line` up to `to_line`.

    They replace what was shown for those lines, and are sent only where they differ from it.
    """

    from_line: int
    to_line: int
    edits: tuple[TextEdit, ...]
    kind: Literal["delta"] = "delta"


@dataclass(frozen=True, slots=True)
class CancelParams:
    """CANCEL: the job of one document; None: all jobs."""

    text_document: TextDocument | None = None


@dataclass(frozen=True, slots=True)
class CancelResult:
    """CANCEL's answer: how many jobs were stopped."""

    cancelled: int


def to_json(value: object) -> object:
    """A message as JSON values: dataclasses become objects, their names camelCase."""
    if is_dataclass(value):
        return {camel_case(part.name): to_json(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, tuple):
        return [to_json(part) for part in value]
    return value


def camel_case(name: str) -> str:
    """A field's name on the wire."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
