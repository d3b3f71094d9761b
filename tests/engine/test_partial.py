"""Partial results: what is shown on the way is true, and adds up to the result."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.config import Verify
from apply_server.document import Document
from apply_server.edits import LineEdit, line_edits
from apply_server.engine.base import Delta, Done, EngineEvent, Preview, Verified
from apply_server.engine.merging import PolicyEngine
from apply_server.engine.partial import Confirmed, Shown
from apply_server.view import ModelView
from tests.engine.support import Bench, request

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "    e", "x = 1"]), max_size=12)


def applied(original: Sequence[str], edits: Sequence[LineEdit]) -> list[str]:
    result: list[str] = []
    at = 0
    for edit in edits:
        result += (*original[at : edit.start], *edit.lines)
        at = edit.end
    return [*result, *original[at:]]


class Screen:
    """An editor that shows the preview and the deltas, as a client would."""

    def __init__(self, original: Sequence[str]) -> None:
        self.original = original
        self.edits: list[LineEdit] = []

    def show(self, event: EngineEvent) -> None:
        match event:
            case Preview(edits=edits):
                self.edits = list(edits)
            case Delta(from_line=start, to_line=end, edits=edits):
                last = end == len(self.original)
                kept = [e for e in self.edits if e.start < start or (e.start >= end and not last)]
                assert all(not (e.start < start < e.end or e.start < end < e.end) for e in kept)
                self.edits = sorted((*kept, *edits), key=lambda edit: edit.start)
            case _:
                pass

    @property
    def lines(self) -> list[str]:
        return applied(self.original, self.edits)


def events_of(shown: Shown, answer: Sequence[str], cuts: Sequence[int]) -> list[EngineEvent]:
    """The events of a run that confirms `answer` in pieces."""
    document = Document.from_text("".join(f"{line}\n" for line in shown.original))
    confirmed = Confirmed(ModelView.of(document))
    events: list[EngineEvent] = []
    pieces = [0, *sorted(min(cut, len(answer)) for cut in cuts), len(answer)]
    for start, end in itertools.pairwise(pieces):
        edits = confirmed.feed([f"{line}\n" for line in answer[start:end]])
        events += verified(shown, confirmed, edits)
    events += verified(shown, confirmed, confirmed.finish())
    return events


def verified(shown: Shown, confirmed: Confirmed, edits: tuple[LineEdit, ...]) -> list[EngineEvent]:
    lines = confirmed.original_line, confirmed.result_line
    return list(shown.follow(Verified(*lines, edits, 1, 1.0, confirmed.copied_share, 1.0)))


@settings(deadline=None)
@given(LINES, LINES, LINES, st.lists(st.integers(0, 12), max_size=4))
def test_preview_and_deltas_add_up_to_the_result(
    original: list[str], predicted: list[str], answer: list[str], cuts: list[int]
) -> None:
    document = Document.from_text("".join(f"{line}\n" for line in original))
    view = ModelView.of(document)
    final = view.restore("".join(f"{line}\n" for line in answer))
    result = list(Document.from_text(final).line_texts())
    screen = Screen(original)
    screen.edits = list(line_edits(original, predicted))
    shown = Shown(original, tuple(screen.edits))
    confirmed = 0
    for event in events_of(shown, answer, cuts):
        screen.show(event)
        if isinstance(event, Verified):
            assert event.original_line >= confirmed
            confirmed = event.original_line
    edits = line_edits(original, result)
    for event in shown.follow(Done(edits, final)):
        screen.show(event)
    assert screen.lines == result


def test_what_the_preview_had_right_is_not_sent_again() -> None:
    original = ["a", "b", "c", "d"]
    edit = LineEdit(1, 2, ("x",))
    events = events_of(Shown(original, (edit,)), ["a", "x", "c", "d"], [1, 2, 3])
    assert [event for event in events if isinstance(event, Delta)] == []
    kinds = [(e.original_line, e.result_line, e.edits) for e in events if isinstance(e, Verified)]
    assert kinds == [(1, 1, ()), (1, 1, ()), (3, 3, (edit,)), (4, 4, ()), (4, 4, ())]


def test_what_the_preview_had_wrong_is_replaced_where_it_was() -> None:
    original = ["a", "b", "c", "d", "e"]
    shown = Shown(original, (LineEdit(1, 2, ("x",)), LineEdit(3, 4, ("y",))))
    events = events_of(shown, ["a", "x", "c", "z", "e"], [1, 2, 3, 4])
    deltas = [event for event in events if isinstance(event, Delta)]
    assert deltas == [Delta(3, 4, (LineEdit(3, 4, ("z",)),))]


def test_without_a_preview_every_decided_edit_is_sent_once() -> None:
    original = [str(number) for number in range(9)]
    answer = ["0", "one", "2", "3", "4", "5", "6", "seven", "8"]
    events = events_of(Shown(original), answer, list(range(9)))
    edits = [edit for event in events if isinstance(event, Delta) for edit in event.edits]
    assert edits == [LineEdit(1, 2, ("one",)), LineEdit(7, 8, ("seven",))]


@pytest.mark.parametrize(
    ("original", "answer"),
    [
        ("    a\n    b\n", "a\nx\n"),
        ("a\nb", "a\nb\nc\n"),
        ("", "new\nfile\n"),
        ("\n\n a\n\n", "b\n"),
        ("a\n\n\nb\n", "\n\na\nx\n\n\nb\n"),
    ],
)
def test_an_engine_confirms_all_lines_and_shows_what_it_returns(original: str, answer: str) -> None:
    asked = request(original, "edit it")
    engine = PolicyEngine(Verify.ALWAYS, Bench(f"{answer}```").engine)
    screen = Screen(asked.document.line_texts())
    events = list(engine.run(asked, Event()))
    for event in events:
        screen.show(event)
    done = events[-1]
    assert isinstance(done, Done)
    assert screen.lines == applied(screen.original, done.edits)
    last = [event for event in events if isinstance(event, Verified)][-1]
    assert last.original_line == len(asked.document.lines)
    assert last.result_line == len(screen.lines)
