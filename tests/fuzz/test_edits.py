"""Edits in every dialect: exact or refused when sound, and never harmful when not."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from apply_server.document import Document
from apply_server.engine.base import Done
from apply_server.errors import UnsupportedEncoding
from apply_server.request import EditRequest
from tests.fuzz.damage import damaged, garbage, joined
from tests.fuzz.dialects import DIALECTS
from tests.fuzz.documents import ENDINGS, Code, code, encoded, texts
from tests.fuzz.edits import known_edits
from tests.fuzz.invariants import leaks, outcome
from tests.fuzz.running import fuzzed


def document_of(draw: st.DrawFn, lines: tuple[str, ...]) -> Document:
    """A file of these lines, as far as its encoding can hold them, or an editor's buffer."""
    text = draw(texts(lines))
    if draw(st.booleans()):
        return Document.from_text(text)
    try:
        return Document.from_bytes(*encoded(draw, text))
    except UnsupportedEncoding:
        return Document.from_text(text)


def _filled(lines: tuple[str, ...]) -> list[str]:
    """Blank lines without their blanks: which of several has some is not the edit's business."""
    return [line if line.strip() else "" for line in lines]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_sound_edit_gives_the_intended_file_or_a_refusal(dialect):
    @fuzzed(examples=40, share=0.1)
    @given(code(), st.data())
    def run(source: Code, more: st.DataObject) -> None:
        document = Document.from_text(more.draw(texts(source.lines)))
        edit = more.draw(known_edits(Code(document.line_texts(), source.language)))
        assume(edit.hunks)
        ending = more.draw(st.sampled_from(ENDINGS))
        snippet = "".join(line + ending for line in more.draw(DIALECTS[dialect](edit)))
        assume(not snippet.startswith("\ufeff"))  # that would be the snippet's own mark
        request = EditRequest(document, "file", snippet=snippet, language=source.language)
        result = outcome(request)
        if isinstance(result, Done):
            wanted = edit.expected
            while not document.lines[-1].eol and wanted and not wanted[-1]:
                wanted = wanted[:-1]
            assert _filled(Document.from_text(result.text).line_texts()) == _filled(wanted)

    run()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_damaged_edit_does_no_harm(dialect):
    @fuzzed(examples=25, share=0.05)
    @given(code(), st.data())
    def run(source: Code, more: st.DataObject) -> None:
        document = document_of(more.draw, source.lines)
        edit = more.draw(known_edits(Code(document.line_texts(), source.language)))
        assume(edit.hunks)
        lines = damaged(more.draw, more.draw(DIALECTS[dialect](edit)), source.language)
        snippet = joined(more.draw, lines)
        assume(snippet.strip())
        request = EditRequest(document, "file", snippet=snippet, language=source.language)
        result = outcome(request)
        if isinstance(result, Done):
            assert not leaks(request, result, edit.expected)

    run()


@fuzzed(examples=60, share=0.1)
@given(code(), st.data())
def test_garbage_is_refused_or_does_what_it_says(source: Code, more: st.DataObject):
    document = document_of(more.draw, source.lines)
    snippet = more.draw(garbage(source.lines))
    instruction = more.draw(st.sampled_from(["", "", "remove everything", "x (", "\ud800"]))
    assume(snippet.strip())
    outcome(EditRequest(document, "file", instruction, snippet, source.language))
