"""Reads what clients send into the protocol's values. Nothing about it can be taken for granted.

Must not know what a request does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apply_server.config import Verify
from apply_server.errors import InvalidRequest
from apply_server.lsp.protocol import (
    ApplyOptions,
    ApplyParams,
    CancelParams,
    Position,
    Range,
    TextDocument,
    Token,
)


def apply_params(value: object) -> ApplyParams:
    """Raises InvalidRequest naming what is wrong."""
    given = _Object.of(value, "params")
    return ApplyParams(
        text_document=_text_document(given.required("textDocument")),
        instruction=given.text("instruction"),
        snippet=given.text("snippet"),
        selection=_range(given, "selection"),
        edit_range=_range(given, "editRange"),
        options=_options(given.get("options")),
        work_done_token=given.token("workDoneToken"),
        partial_result_token=given.token("partialResultToken"),
    )


def cancel_params(value: object) -> CancelParams:
    """No params at all mean all jobs. Raises InvalidRequest."""
    given = _Object.of({} if value is None else value, "params")
    document = given.get("textDocument")
    return CancelParams(None if document is None else _text_document(document))


def prepare_params(value: object) -> TextDocument:
    """Raises InvalidRequest naming what is wrong."""
    return _text_document(_Object.of(value, "params").required("textDocument"))


@dataclass(frozen=True, slots=True)
class _Object:
    """A JSON object; `path` is where it stands, for messages. null is the same as nothing."""

    values: Mapping[str, object]
    path: str

    @classmethod
    def of(cls, value: object, path: str) -> _Object:
        if not isinstance(value, Mapping):
            raise InvalidRequest(f"{path} must be an object.")
        return cls(value, path)

    def get(self, name: str) -> object:
        return self.values.get(name)

    def required(self, name: str) -> object:
        value = self.values.get(name)
        if value is None:
            raise InvalidRequest(f"{self.path}.{name} is missing.")
        return value

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise InvalidRequest(f"{self.path}.{name} must be a string.")
        return value or ""

    def integer(self, name: str) -> int:
        value = self.required(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise InvalidRequest(f"{self.path}.{name} must be a whole number.")
        return value

    def token(self, name: str) -> Token | None:
        value = self.values.get(name)
        if value is not None and (not isinstance(value, int | str) or isinstance(value, bool)):
            raise InvalidRequest(f"{self.path}.{name} must be a string or a whole number.")
        return value


def _text_document(value: object) -> TextDocument:
    given = _Object.of(value, "params.textDocument")
    given.required("uri")
    version = None if given.get("version") is None else given.integer("version")
    return TextDocument(given.text("uri"), version)


def _range(params: _Object, name: str) -> Range | None:
    if params.get(name) is None:
        return None
    given = _Object.of(params.get(name), f"{params.path}.{name}")
    start, end = (
        _position(given.required(part), f"{given.path}.{part}") for part in ("start", "end")
    )
    return Range(start, end)


def _position(value: object, path: str) -> Position:
    given = _Object.of(value, path)
    return Position(given.integer("line"), given.integer("character"))


def _options(value: object) -> ApplyOptions:
    if value is None:
        return ApplyOptions()
    given = _Object.of(value, "params.options")
    guards = given.get("allowedGuards")
    if guards is not None and not (
        isinstance(guards, list) and all(isinstance(name, str) for name in guards)
    ):
        raise InvalidRequest("params.options.allowedGuards must be a list of strings.")
    try:
        verify = Verify(given.text("verify")) if given.text("verify") else None
    except ValueError:
        raise InvalidRequest(
            f"params.options.verify must be one of {', '.join(map(str, Verify))}."
        ) from None
    return ApplyOptions(verify, tuple(guards or ()))
