from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.document import Document, split_lines
from apply_server.edits import EditStream, apply_edits, rewrite
from apply_server.view import ModelView

texts = st.lists(
    st.tuples(
        st.sampled_from(["", " ", "  ", "\t", "  \t"]),
        st.sampled_from(["", "a", "b", "c d", "\x0c", "é😀"]),
        st.sampled_from(["", " ", "\t "]),
        st.sampled_from(["\n", "\n", "\r\n", "\r"]),
    ),
    max_size=10,
).flatmap(
    lambda lines: st.sampled_from(
        ["".join(map("".join, lines)), "".join(map("".join, lines)).rstrip("\r\n")]
    )
)


@given(texts)
@settings(deadline=None, max_examples=400)
def test_a_copied_view_restores_the_document_exactly(text: str) -> None:
    document = Document.from_text(text)
    view = ModelView.of(document)
    assert view.restore(view.text) == document.view()
    assert rewrite(document, view.restore(view.text)) == ((), text)


@given(texts)
@settings(deadline=None)
def test_the_view_has_nothing_a_model_could_mistreat(text: str) -> None:
    view = ModelView.of(Document.from_text(text))
    assert not view.lines or (view.lines[0] and view.lines[-1])
    assert all(line == line.rstrip(" \t") for line in view.lines)
    filled = [line for line in view.lines if line]
    assert not filled or len({line[0] for line in filled}) > 1 or filled[0][0] not in " \t"
    assert tuple(line.text for line in split_lines(view.text)) == view.lines


@given(texts, texts)
@settings(deadline=None, max_examples=300)
def test_restoring_is_exact_and_settled(text: str, answer: str) -> None:
    """What the document became is a text whose own view restores it, twice over."""
    view = ModelView.of(Document.from_text(text))
    restored = view.restore(answer)
    again = ModelView.of(Document.from_text(restored))
    assert again.restore(again.text) == restored


@given(texts, texts)
@settings(deadline=None, max_examples=300)
def test_streamed_edits_of_the_view_fit_the_document(text: str, answer: str) -> None:
    document = Document.from_text(text)
    view = ModelView.of(document)
    if not view.lines:
        return
    stream = EditStream(view.lines)
    edits = [view.to_document(edit) for edit in (*stream.feed(answer), *stream.finish())]
    changed = [line.text.strip(" \t") for line in split_lines(apply_edits(document, edits))]
    wanted = [line.text.strip(" \t") for line in split_lines(view.restore(answer))]
    assert [line for line in changed if line] == [line for line in wanted if line]


def test_common_indentation_comes_off_and_goes_back() -> None:
    document = Document.from_text("\n    def f(self):  \n        return 1\n\t\n    x = 2\n\n")
    view = ModelView.of(document)
    assert view.text == "def f(self):\n    return 1\n\nx = 2\n"
    assert view.restore("def f(self):\n    return 3\n\ny = 1\nx = 2\n") == (
        "\n    def f(self):  \n        return 3\n\t\n    y = 1\n    x = 2\n\n"
    )


@pytest.mark.parametrize("answer", ["a\nb", "\n\na\nb\n\n", "a\nb\n \n"])
def test_blank_lines_at_the_ends_are_not_the_models(answer: str) -> None:
    view = ModelView.of(Document.from_text("\n\na\n \n"))
    assert view.restore(answer) == "\n\na\nb\n \n"


def test_tabs_and_spaces_are_not_confused() -> None:
    view = ModelView.of(Document.from_text("\ta\n\t  b\n    c\n"))
    assert (view.indentation, view.text) == ("", "\ta\n\t  b\n    c\n")
    view = ModelView.of(Document.from_text("\t a\n\tb\n"))
    assert (view.indentation, view.text) == ("\t", " a\nb\n")


@pytest.mark.parametrize(("text", "result"), [("", "x\n"), ("\n \n", "\n \nx\n")])
def test_a_document_without_text_takes_the_answer(text: str, result: str) -> None:
    view = ModelView.of(Document.from_text(text))
    assert view.text == ""
    assert view.restore("x\n") == result


def test_the_final_newline_is_the_documents() -> None:
    assert ModelView.of(Document.from_text("a")).restore("a\nb\n") == "a\nb"
    assert ModelView.of(Document.from_text("a\n")).restore("a\nb") == "a\nb\n"


@pytest.mark.parametrize("blanks", [" ", "  ", "\t", " \t "])
def test_a_changed_line_keeps_the_trailing_whitespace_the_model_never_saw(blanks: str) -> None:
    document = Document.from_text(f"a = 1{blanks}\nb = 2\nc = 3{blanks}\n")
    view = ModelView.of(document)
    assert view.restore("a = 1\nb = 2\nc = 4\n") == f"a = 1{blanks}\nb = 2\nc = 4{blanks}\n"


def test_inserted_lines_take_no_trailing_whitespace_from_their_neighbours() -> None:
    view = ModelView.of(Document.from_text("a = 1  \nb = 2  \n"))
    assert view.restore("a = 1\nnew\nb = 2\n") == "a = 1  \nnew\nb = 2  \n"
