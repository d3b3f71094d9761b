"""What holds for every edit of every file, whatever was asked: run it and check it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from threading import Event

from apply_server.config import Verify
from apply_server.document import Document, Line, PositionEncoding, split_lines
from apply_server.edits import LineEdit, apply_edits, text_edits
from apply_server.engine.base import Done, Engine
from apply_server.engine.guarded import GuardedEngine
from apply_server.engine.merging import PolicyEngine
from apply_server.errors import ApplyError, UnsupportedEncoding
from apply_server.languages import is_markdown
from apply_server.request import EditRequest
from apply_server.snippet.markers import is_marker
from tests.fuzz.running import bounded

POSITIONS: tuple[PositionEncoding, ...] = ("utf-8", "utf-16", "utf-32")
# Lines that no dialect's text consists of, whatever stands around them.
_SYNTAX = re.compile(
    r"(?:<{7}|>{7})(?: SEARCH| REPLACE)?$|\*\*\* (?:Begin|End) Patch$|\*\*\* (?:Update|Add) File: |"
    r"\*\*\* End of File$|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|diff --git a/|```\w*$|~~~+$"
)


def outcome(request: EditRequest) -> Done | ApplyError:
    """The public path without a model; the same twice; anything but an ApplyError is a fault."""
    with bounded():
        first, second = _once(request), _once(request)
    if isinstance(first, ApplyError):
        assert isinstance(second, ApplyError)
        assert first.to_json() == second.to_json()
        assert first.message
    else:
        assert first == second
        check(request.document, first.edits, first.text)
    return first


def check(document: Document, edits: Sequence[LineEdit], text: str) -> None:
    """Nothing outside the edits changed, it can be written, and an editor gets the same."""
    assert apply_edits(document, edits) == text
    _check_untouched(document, edits, text)
    _check_encoding(document, text)
    for encoding in POSITIONS:
        assert _edited(document, edits, encoding) == text


def leaks(request: EditRequest, done: Done, real: Sequence[str] = ()) -> Counter[str]:
    """Lines of an edit's syntax that neither the file nor the edit's `real` lines account for."""
    found = _syntax_lines([line.text for line in split_lines(done.text)])
    found -= _syntax_lines(request.document.line_texts()) | _syntax_lines(real)
    if is_markdown(request.language):  # its own text
        return Counter({text: count for text, count in found.items() if text[0] not in "`~"})
    return found


def _once(request: EditRequest) -> Done | ApplyError:
    engine = GuardedEngine(PolicyEngine(Verify.NEVER, _no_model))
    try:
        (done,) = engine.run(request, Event())
    except ApplyError as error:
        return error
    assert isinstance(done, Done)
    return done


def _no_model() -> Engine:
    raise AssertionError("no model is asked")


def _check_untouched(document: Document, edits: Sequence[LineEdit], text: str) -> None:
    """Each line outside the edits has its old bytes, where the edits say it stands now."""
    result = split_lines(text)
    at = shift = 0
    for edit in (*edits, LineEdit(len(document.lines), len(document.lines), ())):
        for row in range(at, edit.start):
            if row + shift < len(result):
                assert _same(document, row, result, row + shift), (row, row + shift)
            else:  # a file without a final newline has no blank lines at its end
                assert not document.lines[-1].eol
                assert not document.lines[row].text
        at, shift = edit.end, shift + len(edit.lines) - (edit.end - edit.start)


def _same(document: Document, row: int, result: Sequence[Line], now: int) -> bool:
    old, new = document.lines[row], result[now]
    if old == new:
        return True
    last = row == len(document.lines) - 1 or now == len(result) - 1
    became_last = last and not document.lines[-1].eol
    below = result[now + 1 : now + 2]
    fuses = old.eol == "\r" and bool(below) and below[0] == Line("", "\n")
    return old.text == new.text and (became_last or (fuses and new.eol == "\n"))


def _check_encoding(document: Document, text: str) -> None:
    try:
        data = document.encode(text)
    except UnsupportedEncoding:
        return
    again = Document.from_bytes(data, document.encoding)
    assert _mark(again) + again.text == _mark(document) + text


def _mark(document: Document) -> str:
    return document.bom.decode(document.encoding)


def _edited(document: Document, edits: Sequence[LineEdit], encoding: PositionEncoding) -> str:
    text, at = "", 0
    for edit in text_edits(document, edits, encoding):
        start = document.offset(edit.start, encoding)
        end = document.offset(edit.end, encoding)
        assert at <= start <= end
        assert document.position(start, encoding) == edit.start
        assert document.position(end, encoding) == edit.end
        text += document.text[at:start] + edit.new_text
        at = end
    return text + document.text[at:]


def _syntax_lines(lines: Sequence[str]) -> Counter[str]:
    texts = [line.strip() for line in lines]
    return Counter(text for text in texts if _SYNTAX.match(text) or is_marker(text))
