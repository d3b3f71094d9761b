"""The one tree of errors a user can meet, with codes that never change.

The same code appears in LSP errors, in the CLI's JSON and in the README. This module must not know
who shows an error or how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

REFUSED = 2
FAILED = 3
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Remedy:
    """A setting that helps, by its name in the configuration.

    The command line and editors each have a name of their own for it, so only they can put it into
    words: "`--verify whenAmbiguous` lets the model decide." `effect` is what follows the setting.
    """

    setting: str
    values: tuple[str, ...]
    effect: str


class ApplyError(Exception):
    """Something a person can act on. `message` is one sentence or two that say what to do.

    It must fit wherever it is shown; what has another name in each place is the `remedy`.
    `details` holds JSON values for programs (candidate lines, sizes); nothing a person needs is
    only there. `exit_status` is the command line's: 2 = refused, 3 = it should have worked.
    """

    code: ClassVar[str] = "InternalError"
    exit_status: ClassVar[int] = REFUSED

    def __init__(
        self,
        message: str,
        details: Mapping[str, object] | None = None,
        remedy: Remedy | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, object] = dict(details or {})
        self.remedy = remedy

    def spelled(self, spell: Callable[[Remedy], str]) -> Self:
        """The error for one place to show: its remedy in that place's words, in the message."""
        if self.remedy is None:
            return self
        sentence = f"{spell(self.remedy)} {self.remedy.effect}"
        return type(self)(f"{self.message} {sentence}", self.details)

    def to_json(self) -> dict[str, object]:
        """`{"code", "message", "details"}`, for the CLI's JSON and for LSP error data."""
        return {"code": self.code, "message": self.message, "details": self.details}


class InvalidRequest(ApplyError):
    """The request can't be understood: no edit in it, no such file, a bad option."""

    code = "InvalidRequest"


class UnsupportedEncoding(ApplyError):
    """The bytes don't round-trip through any encoding we know, or the result can't be encoded."""

    code = "UnsupportedEncoding"


class AmbiguousTarget(ApplyError):
    """The edit fits several places equally well. `details["lines"]` lists them, from 1."""

    code = "AmbiguousTarget"


class AnchorNotFound(ApplyError):
    """The code the edit refers to is not in the file. `details["lines"]` lists the closest."""

    code = "AnchorNotFound"


class DocumentChanged(ApplyError):
    """The file is not what it was when the edit was computed."""

    code = "DocumentChanged"


class DocumentTooLong(ApplyError):
    """The request needs more tokens than the model or the limit allows."""

    code = "DocumentTooLong"


class Busy(ApplyError):
    """Another apply is running in this document."""

    code = "Busy"


class ReadOnly(ApplyError):
    """The document can't be written."""

    code = "ReadOnly"


class TruncatedOutput(ApplyError):
    """The model stopped before the end of the file (its token cap, or an early end)."""

    code = "TruncatedOutput"


class GuardBlocked(ApplyError):
    """The rewrite looks wrong. `details["guards"]` names why, `details["diff"]` shows it."""

    code = "GuardBlocked"


class ModelUnavailable(ApplyError):
    """The model can't be found, fetched, verified, loaded or used for exact speculation."""

    code = "ModelUnavailable"
    exit_status = FAILED


class WriteFailed(ApplyError):
    """The file system refused the write (full disk, lost share); the original is unharmed."""

    code = "WriteFailed"
    exit_status = FAILED


class Cancelled(ApplyError):
    """The user stopped the job. A state rather than a fault; nothing was applied."""

    code = "Cancelled"
    exit_status = INTERRUPTED
