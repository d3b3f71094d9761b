"""What an engine says while it works, and in the end.

Must not know how the work is done: a local model and a remote server look the same from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from threading import Event
from typing import Protocol

from apply_server.document import Document
from apply_server.edits import LineEdit
from apply_server.request import EditRequest


@dataclass(frozen=True, slots=True)
class Preview:
    """What the merge of the snippet predicts, where it is sure; no model has seen it."""

    edits: tuple[LineEdit, ...]


@dataclass(frozen=True, slots=True)
class ModelNeeded:
    """What comes after this needs the model: whoever shares it among documents waits here."""


@dataclass(frozen=True, slots=True)
class Prefilling:
    """The prompt is being read: `done` of `total` tokens."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Decoding:
    """The answer is being written: `share` of the file (0 to 1), with rates so far."""

    share: float
    tokens_per_s: float
    acceptance_rate: float


@dataclass(frozen=True, slots=True)
class Verified:
    """The target has confirmed the text up to these lines (exclusive) of original and result.

    `edits` are those decided since the last such event, `copied_share` (0 to 1) is of the result's
    lines so far, `passes` and `tokens_per_s` count from the start, `share` is Decoding's.
    """

    original_line: int
    result_line: int
    edits: tuple[LineEdit, ...]
    passes: int
    tokens_per_s: float
    copied_share: float
    share: float


@dataclass(frozen=True, slots=True)
class Delta:
    """The decided edits of the original's lines `from_line` up to `to_line`.

    They replace what was shown for those lines (the preview's edits or nothing) and come only
    where they make another text. With the preview and all deltas applied one has the final text.
    """

    from_line: int
    to_line: int
    edits: tuple[LineEdit, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What one request cost. Times in seconds, prefill and decoding apart.

    `cached_tokens` of the prompt were known from earlier requests. `modelled_cost` is what its
    passes cost by the cost table, in passes over one token.
    `drafted_by` and `accepted_by` divide the drafted and accepted tokens by where they came from:
    copy, merge, model, heads.
    """

    prompt_tokens: int = 0
    output_tokens: int = 0
    target_passes: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    arbitrations: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    propose_s: float = 0.0
    modelled_cost: float = 0.0
    drafted_by: Mapping[str, int] = field(default_factory=dict)
    accepted_by: Mapping[str, int] = field(default_factory=dict)
    cached_tokens: int = 0

    @property
    def tokens_per_pass(self) -> float:
        """All emitted tokens over all target passes, prefill apart."""
        return self.output_tokens / self.target_passes if self.target_passes else 0.0

    @property
    def acceptance_rate(self) -> float:
        """Accepted over drafted tokens; 0 where nothing was drafted."""
        return self.accepted_tokens / self.drafted_tokens if self.drafted_tokens else 0.0

    @property
    def drafted_per_output(self) -> float:
        """Drafted tokens over output tokens; what is over 1 was wasted."""
        return self.drafted_tokens / self.output_tokens if self.output_tokens else 0.0

    @property
    def modelled_speedup(self) -> float:
        """Over plain decoding, which costs one for each token, by the cost table alone."""
        return self.output_tokens / self.modelled_cost if self.modelled_cost else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Decoding rate, prefill apart."""
        return self.output_tokens / self.decode_s if self.decode_s else 0.0

    def to_json(self) -> dict[str, object]:
        """All of it by name, for reports."""
        return asdict(self) | {
            "tokens_per_pass": round(self.tokens_per_pass, 3),
            "acceptance_rate": round(self.acceptance_rate, 4),
            "drafted_per_output": round(self.drafted_per_output, 4),
            "modelled_speedup": round(self.modelled_speedup, 3),
            "tokens_per_s": round(self.tokens_per_s, 2),
        }


@dataclass(frozen=True, slots=True)
class Done:
    """The result: `text` is the whole document's, `edits` the lines that differ.

    `verified` tells whether a target decided every token (else the merge was taken as it is).
    `output` holds the answer's tokens, for comparing runs.
    """

    edits: tuple[LineEdit, ...]
    text: str
    report: Report = Report()
    verified: bool = True
    output: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()


EngineEvent = Preview | ModelNeeded | Prefilling | Decoding | Verified | Delta | Done


class Engine(Protocol):
    """Applies edits, one at a time."""

    def run(self, request: EditRequest, cancel: Event) -> Iterator[EngineEvent]:
        """Events, `Done` last and before it: Preview, ModelNeeded, Prefilling, then Decoding with
        Verified and Delta in between, each where there is something to say.

        Raises an ApplyError instead of a wrong result; Cancelled within one target pass or prefill
        chunk of `cancel` being set. What comes before ModelNeeded may run on another thread.
        """
        ...


class ModelEngine(Engine, Protocol):
    """An engine with its model in it."""

    def warm(
        self, document: Document, name: str, language: str, cancel: Event
    ) -> Iterator[Prefilling]:
        """Compute ahead what an edit of this document will need, whatever the edit is.

        `name` and `language` as in EditRequest. What was done is kept where it ends early. Raises
        Cancelled, and DocumentTooLong.
        """
        ...
