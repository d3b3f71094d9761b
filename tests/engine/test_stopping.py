"""Where answers end, whatever the blocks they come in; and what is counted."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.decode.draft import NoDraft, Proposer
from apply_server.decode.session import Finish, Session
from apply_server.prompt import Answer, Task, chat_wording
from apply_server.target.scripted import ScriptedTarget
from tests.decode.proposers import AlwaysWrong, Hostile, Oracle
from tests.decode.running import run
from tests.engine.support import COST, Bench, Pieces, request

PIECES = ("a", "`", "``", "```", "\n", "\n```", "}\n`", " ```", "", "")
END = chat_wording(Task("f", "", "a", "x", "")).end
EOS = (8, 9)


@dataclass
class Read:
    text: str
    closed: bool
    session: Session  # type: ignore[type-arg]


def decoded(tokens: list[int], proposer: Proposer, limit: int, eos: tuple[int, ...] = EOS) -> Read:
    answer = Answer(Pieces(PIECES), END, frozenset(eos))
    session = run(ScriptedTarget(lambda prompt: tokens), [0], proposer, limit, answer)  # type: ignore[arg-type]
    return Read(answer.text, answer.closed, session)


def expected_end(tokens: list[int], limit: int, eos: tuple[int, ...]) -> int:
    """How many tokens come out, by reading the whole text so far after each token."""
    text = ""
    for count, token in enumerate(tokens[:limit], start=1):
        text += "" if token in eos else PIECES[token]
        if token in eos or END.search(text):
            return count
    return limit


@settings(deadline=None)
@given(
    tokens=st.lists(st.integers(0, 9), min_size=1, max_size=30),
    k=st.integers(0, 12),
    limit=st.integers(1, 30),
    eos=st.sampled_from([(), (8,), EOS]),
    seed=st.integers(0, 1000),
)
def test_the_end_is_the_same_in_blocks_of_any_size(
    tokens: list[int], k: int, limit: int, eos: tuple[int, ...], seed: int
) -> None:
    """A closing in one block or over two, an end or the cap inside an accepted block."""
    limit = min(limit, len(tokens))
    plain = decoded(tokens, NoDraft(), limit, eos)
    end = expected_end(tokens, limit, eos)
    assert plain.session.output == tokens[:end]
    for proposer in (Oracle(tokens, k), Hostile(seed, 10, tokens), AlwaysWrong(7, k)):
        read = decoded(tokens, proposer, limit, eos)
        counters = read.session.counters
        assert (read.text, read.closed) == (plain.text, plain.closed)
        assert read.session.output == plain.session.output
        assert read.session.finish is plain.session.finish
        assert counters.output_tokens == end
        assert counters.accepted_tokens <= min(counters.drafted_tokens, end)
        assert counters.target_passes <= end


@pytest.mark.parametrize("k", range(6))
def test_a_closing_over_two_blocks_ends_at_its_last_backtick(k: int) -> None:
    tokens = [0, 4, 1, 1, 1, 0, 0, 0]
    read = decoded(tokens, Oracle(tokens, k), 8)
    assert (read.text, read.closed) == ("a\n", True)
    assert read.session.output == tokens[:5]
    assert read.session.counters.target_passes == -(-5 // (k + 1))


def test_no_end_of_sequence_configured_means_that_none_is_seen() -> None:
    tokens = [0, 8, 9, 0]
    read = decoded(tokens, Oracle(tokens, 3), 4, eos=())
    assert (read.text, read.closed, read.session.finish) == ("aa", False, Finish.LIMIT)


def test_a_closing_on_the_caps_token_is_a_stop_and_not_a_limit() -> None:
    tokens = [0, 5, 0]
    read = decoded(tokens, Oracle(tokens, 4), 2)
    assert (read.closed, read.session.finish) == (True, Finish.STOPPED)


def test_an_answer_without_a_word_of_the_file_costs_little_over_plain_decoding() -> None:
    letters = random.Random(3)

    def words(alphabet: str, count: int) -> str:
        return "".join(
            "".join(letters.choices(alphabet, k=8)) + ("\n" if i % 6 == 5 else " ")
            for i in range(count)
        )

    original, answer = words("abcdefgh", 300), words("ijklmnop", 300)
    bench = Bench(f"{answer}```")
    done = bench.done(request(original, "rewrite it"))
    assert done.text == answer
    assert sum(map(COST.cost, bench.target.blocks)) <= 1.05 * done.report.output_tokens
