"""The loop against a scripted target: exact outputs and exact pass counts."""

from __future__ import annotations

from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_server.decode.accept import accept
from apply_server.decode.draft import Draft, NoDraft
from apply_server.decode.loop import decode, step
from apply_server.decode.session import Finish, Session
from apply_server.decode.target import Verdict
from apply_server.errors import Cancelled
from apply_server.target.scripted import ScriptedTarget
from tests.decode.proposers import AlwaysWrong, Hostile, Oracle
from tests.decode.running import StopAt, run

EOS = 99


def scripted(*answer: int) -> ScriptedTarget:
    return ScriptedTarget(lambda prompt: answer)


def test_a_perfect_draft_at_k_4_needs_4_passes_for_20_tokens() -> None:
    answer = tuple(range(1, 21))
    session = run(scripted(*answer), [0], Oracle(answer, 4), 20)
    assert tuple(session.output) == answer
    assert session.counters.target_passes == 4


def test_an_always_wrong_draft_needs_a_pass_for_every_token() -> None:
    answer = tuple(range(1, 21))
    session = run(scripted(*answer), [0], AlwaysWrong(55), 20)
    assert tuple(session.output) == answer
    assert session.counters.target_passes == 20
    assert session.counters.accepted_tokens == 0


def test_plain_decoding_is_the_empty_draft() -> None:
    answer = tuple(range(1, 8))
    session = run(scripted(*answer), [0], NoDraft(), 7)
    assert tuple(session.output) == answer
    assert session.counters.target_passes == 7
    assert session.counters.drafted_tokens == 0


def test_the_end_of_sequence_inside_an_accepted_block_stops_there() -> None:
    answer = (1, 2, EOS, 3, 4, 5)
    session = run(scripted(*answer), [0], Oracle(answer, 5), 20, StopAt(EOS))
    assert session.output == [1, 2, EOS]
    assert session.finish is Finish.STOPPED
    assert session.counters.target_passes == 1
    assert session.counters.output_tokens == 3
    assert session.counters.accepted_tokens == 3


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6, 7, 30])
@pytest.mark.parametrize("limit", [1, 2, 5, 6])
def test_the_limit_holds_inside_a_block_and_for_the_bonus_token(k: int, limit: int) -> None:
    answer = tuple(range(1, 31))
    session = run(scripted(*answer), [0], Oracle(answer, k), limit)
    assert tuple(session.output) == answer[:limit]
    assert session.finish is Finish.LIMIT


def test_the_counters_hold_what_each_pass_was_fed() -> None:
    answer = tuple(range(1, 11))
    session = run(scripted(*answer), [0], Oracle(answer, 4), 10)
    assert session.counters.blocks == [5, 5]
    assert session.counters.drafted_tokens == 8


@pytest.mark.parametrize("k", range(7))
def test_each_pass_emits_the_accepted_tokens_and_one_more(k: int) -> None:
    answer = tuple(range(1, 25))
    session = run(scripted(*answer), [0], Oracle(answer, k), 24)
    assert session.counters.target_passes == -(-24 // (k + 1))


@given(
    answer=st.lists(st.integers(0, 5), min_size=1, max_size=40),
    seed=st.integers(0, 10_000),
)
def test_any_proposer_leaves_the_output_unchanged(answer: list[int], seed: int) -> None:
    session = run(scripted(*answer), [0], Hostile(seed, 6, answer), len(answer))
    assert session.output == answer
    assert session.counters.target_passes <= len(answer)
    assert session.counters.output_tokens == len(answer)


@given(seed=st.integers(0, 10_000))
def test_accept_takes_the_longest_path_that_the_target_would_choose(seed: int) -> None:
    answer = [seed % 3, seed % 5, seed % 2, 1]
    draft = Hostile(seed, 4, answer).propose([], 9)
    target = scripted(*answer)
    slot = target.open([0], 9)
    path, token = accept(draft, target.verify([(slot, draft)])[0])
    paths = [[]] + [_path_to(draft, node) for node in range(len(draft))]
    whole = [*answer, *[target.off_script] * 9]
    right = [p for p in paths if [draft.tokens[i] for i in p] == whole[: len(p)]]
    assert list(path) == max(right, key=len)
    assert token == whole[len(path)]


def _path_to(draft: Draft, node: int) -> list[int]:
    path: list[int] = []
    while node >= 0:
        path.insert(0, node)
        node = draft.parents[node]
    return path


def test_accept_descends_into_the_branch_the_target_chose() -> None:
    draft = Draft((7, 8, 9), (-1, -1, 1))
    assert accept(draft, Verdict((8, 0, 9, 4))) == ((1, 2), 4)


def test_one_pass_serves_a_whole_batch() -> None:
    answers = {1: (1, 2, 3), 2: (4, 5, 6)}
    target = ScriptedTarget(lambda prompt: answers[prompt[0]])
    sessions = [
        Session(target.open([key], 3), Oracle(answer, key), StopAt(), 3)
        for key, answer in answers.items()
    ]
    step(sessions, target)
    assert [session.output for session in sessions] == [[1, 2], [4, 5, 6]]
    assert target.passes == 1


def test_a_cancelled_session_makes_no_further_pass() -> None:
    answer = tuple(range(1, 21))
    target = scripted(*answer)
    cancel = Event()
    session = Session(target.open([0], 20), Oracle(answer, 4), StopAt(), 20, cancel)
    steps = decode(session, target)
    next(steps)
    cancel.set()
    with pytest.raises(Cancelled):
        next(steps)
    assert target.passes == 1
    assert session.output == [1, 2, 3, 4, 5]
