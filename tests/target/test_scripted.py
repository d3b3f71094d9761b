"""The script as a target: it chooses its next token along a path that follows it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apply_server.decode.draft import NO_DRAFT, Draft
from apply_server.target.scripted import ScriptedTarget

OFF = 77


def target(*answer: int) -> ScriptedTarget:
    return ScriptedTarget(lambda prompt: answer, off_script=OFF)


def choices(script: ScriptedTarget, draft: Draft, committed: int = 0) -> tuple[int, ...]:
    slot = script.open([0], 9)
    slot.committed = committed
    return script.verify([(slot, draft)])[0].choices


def test_without_a_draft_the_choice_is_the_next_token() -> None:
    assert choices(target(4, 5, 6), NO_DRAFT) == (4,)
    assert choices(target(4, 5, 6), NO_DRAFT, committed=2) == (6,)


def test_past_its_end_the_script_chooses_the_same_token_for_ever() -> None:
    assert choices(target(4), NO_DRAFT, committed=1) == (OFF,)
    assert choices(target(4), Draft.chain([4, OFF, OFF])) == (4, OFF, OFF, OFF)


def test_each_branch_is_judged_on_its_own() -> None:
    draft = Draft((4, 9, 5, 5, 6), (-1, -1, 0, 1, 2))
    assert choices(target(4, 5, 6, 7), draft) == (4, 5, OFF, 6, OFF, 7)


@given(
    answer=st.lists(st.integers(0, 2), min_size=1, max_size=8),
    nodes=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 99)), max_size=10),
    committed=st.integers(0, 8),
)
def test_a_node_whose_path_follows_the_script_is_continued(
    answer: list[int], nodes: list[tuple[int, int]], committed: int
) -> None:
    parents = tuple(place % (i + 1) - 1 for i, (_, place) in enumerate(nodes))
    draft = Draft(tuple(token for token, _ in nodes), parents)
    rest = [*answer[committed:], *[OFF] * 20]
    expected = [rest[0]]
    for node in range(len(draft)):
        path, at = list[int](), node
        while at >= 0:
            path.insert(0, draft.tokens[at])
            at = parents[at]
        expected.append(rest[len(path)] if path == rest[: len(path)] else OFF)
    assert choices(target(*answer), draft, committed) == tuple(expected)


def test_committing_moves_past_the_path_and_the_pending_token() -> None:
    script = target(4, 5, 6, 7)
    slot = script.open([0], 9)
    script.commit(slot, (0, 1), 6)
    assert script.verify([(slot, NO_DRAFT)])[0].choices == (7,)


def test_the_prompt_chooses_the_script_and_slots_are_apart() -> None:
    script = ScriptedTarget(lambda prompt: (prompt[-1], 1))
    first, second = script.open([8], 2), script.open([9], 2)
    script.commit(first, (), 8)
    verdicts = script.verify([(first, NO_DRAFT), (second, NO_DRAFT)])
    assert [verdict.choices for verdict in verdicts] == [(1,), (9,)]
    assert script.passes == 1
    assert list(script.prefill(first)) == []
