"""A selection: only its lines are edited, and nothing else can change."""

from __future__ import annotations

from threading import Event

import pytest

from apply_server.config import EngineConfig, Verify
from apply_server.edits import LineEdit
from apply_server.engine.base import Delta, Done, Preview, Verified
from apply_server.engine.build import guarded
from apply_server.engine.merging import PolicyEngine
from apply_server.errors import DocumentTooLong, InvalidRequest
from apply_server.request import EditRequest
from tests.engine.support import Bench, request

ORIGINAL = "def a():\r\n    return 1\r\n\r\n\r\ndef b():\r\n    return 1"
CONFIG = EngineConfig("unused")


def selected(first: int, end: int, instruction: str = "", snippet: str = "") -> EditRequest:
    whole = request(ORIGINAL, instruction, snippet)
    return EditRequest(whole.document, whole.name, instruction, snippet, None, (first, end))


def test_the_model_sees_and_changes_the_selected_lines_only() -> None:
    bench = Bench("def b():\n    return 2\n```")
    engine = guarded(PolicyEngine(Verify.ALWAYS, bench.engine), CONFIG)
    events = list(engine.run(selected(4, 6, "return 2"), Event()))
    done = events[-1]
    assert isinstance(done, Done)
    assert done.text == "def a():\r\n    return 1\r\n\r\n\r\ndef b():\r\n    return 2"
    assert done.edits == (LineEdit(5, 6, ("    return 2",)),)
    assert [event for event in events if isinstance(event, Delta)] == [Delta(5, 6, done.edits)]
    confirmed = [event for event in events if isinstance(event, Verified)]
    assert (confirmed[-1].original_line, confirmed[-1].result_line) == (6, 6)
    (sources,) = bench.sources
    assert sources.original == bench.tokenizer.encode("def b():\n    return 1\n```")


def test_a_selection_says_which_of_two_places_a_snippet_means() -> None:
    snippet = "<<<<<<< SEARCH\n    return 1\n=======\n    return 3\n>>>>>>> REPLACE\n"
    engine = guarded(PolicyEngine(Verify.NEVER, Bench("").engine), CONFIG)
    *_, done = engine.run(selected(0, 2, snippet=snippet), Event())
    assert isinstance(done, Done)
    assert done.text == ORIGINAL.replace("return 1", "return 3", 1)


def test_a_preview_stands_where_the_selection_does() -> None:
    engine = PolicyEngine(Verify.ALWAYS, Bench("def b():\n    return 3\n```").engine)
    events = list(
        guarded(engine, CONFIG).run(selected(4, 6, snippet="def b():\n    return 3\n"), Event())
    )
    assert events[0] == Preview((LineEdit(5, 6, ("    return 3",)),))
    assert [event for event in events if isinstance(event, Delta)] == []


@pytest.mark.parametrize("selection", [(2, 2), (6, 9)])
def test_a_selection_without_lines_is_refused(selection: tuple[int, int]) -> None:
    with pytest.raises(InvalidRequest, match="selection is empty"):
        selected(*selection, "x")


def test_a_file_over_the_users_limit_is_refused_with_both_numbers() -> None:
    bench = Bench("a\n```")
    engine = bench.engine()
    limited = type(engine)(engine.model, engine.proposer, max_file=3)
    with pytest.raises(DocumentTooLong, match="Needs about 5 tokens; limit is 3") as caught:
        list(limited.run(request("a\nb\n", "edit it"), Event()))
    assert caught.value.details == {"needed": 5, "limit": 3}
    assert bench.target.opened == []
