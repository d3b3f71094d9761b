"""The suffix index equals brute force, stays small, and drafts what followed its match."""

from __future__ import annotations

import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.decode.draft import Draft, Step
from apply_server.propose.suffix import ChainProposer, Match, SuffixAutomaton, SuffixSource

few_tokens = st.lists(st.integers(0, 3), max_size=60)


def longest_repeated_suffix(text: list[int]) -> Match:
    """By brute force: the longest suffix with an earlier occurrence, and its first one's end."""
    for length in range(len(text) - 1, 0, -1):
        for start in range(len(text) - length):
            if text[start : start + length] == text[-length:]:
                return Match(length, start + length)
    return Match(0, 0)


@settings(deadline=None, max_examples=300)
@given(few_tokens)
def test_match_equals_brute_force_after_every_token(text: list[int]) -> None:
    automaton = SuffixAutomaton()
    for position, token in enumerate(text, start=1):
        automaton.append(token)
        assert automaton.match() == longest_repeated_suffix(text[:position])


@settings(deadline=None)
@given(few_tokens, few_tokens, few_tokens)
def test_several_sources_equal_brute_force_with_separators(
    first: list[int], second: list[int], output: list[int]
) -> None:
    proposer = ChainProposer(SuffixSource((first, second)))
    proposer.observe(Step(Draft(), (), tuple(output)))
    text = [*first, -1, *second, -2, *output]
    match = longest_repeated_suffix(text)
    follows = text[match.next :][:10] if match.length else []
    expected = follows[: next((i for i, token in enumerate(follows) if token < 0), 10)]
    assert proposer.propose(output, 10).tokens == tuple(expected)


def test_twenty_thousand_tokens_take_under_100_bytes_each() -> None:
    tokens = [(i * i // 7 + i // 50) % 997 for i in range(20_000)]
    tracemalloc.start()
    automaton = SuffixAutomaton(tokens)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(automaton.text) == 20_000
    assert size <= 100 * len(tokens)


def test_a_draft_ends_with_its_source() -> None:
    proposer = ChainProposer(SuffixSource(((1, 2, 3, 4), (5, 6))))
    proposer.observe(Step(Draft(), (), (2,)))
    assert proposer.propose([2], 10).tokens == (3, 4)
    assert proposer.propose([2], 1).tokens == (3,)
