"""The wire form of our messages."""

from __future__ import annotations

from apply_server.errors import ApplyError
from apply_server.lsp.protocol import (
    ERROR_NUMBERS,
    CancelParams,
    Delta,
    Position,
    Range,
    TextEdit,
    Verified,
    to_json,
)


def test_names_are_camel_case_and_tuples_lists() -> None:
    edit = TextEdit(Range(Position(1, 2), Position(3, 4)), "x\n")
    place = {"start": {"line": 1, "character": 2}, "end": {"line": 3, "character": 4}}
    assert to_json(Delta(1, 3, (edit,))) == {
        "fromLine": 1,
        "toLine": 3,
        "edits": [{"range": place, "newText": "x\n"}],
        "kind": "delta",
    }
    assert to_json(CancelParams()) == {"textDocument": None}
    assert to_json(Verified(1, 2, 3, 4.5, 0.5, 1.0)) == {
        "originalLine": 1, "resultLine": 2, "passes": 3, "tokensPerS": 4.5, "copiedShare": 0.5,
        "share": 1.0, "kind": "verified",
    }  # fmt: skip


def test_numbers_belong_to_codes_that_exist() -> None:
    assert set(ERROR_NUMBERS) <= {error.code for error in ApplyError.__subclasses__()}
