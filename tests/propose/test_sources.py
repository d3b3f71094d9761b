"""Pointer, recent occurrences, positions, survival and prompt lookup, each alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.decode.draft import Draft, Step
from apply_server.propose.copy import Pointer
from apply_server.propose.lookup import PromptLookup
from apply_server.propose.positions import Positions
from apply_server.propose.recent import RecentOccurrences
from apply_server.propose.survival import Survival

few_tokens = st.lists(st.integers(0, 4), max_size=50)


def followed(text: list[int], output: list[int]) -> list[tuple[str, int, int]]:
    """(source, place, match) of a pointer's continuations after `output`."""
    pointer = Pointer(text, "file")
    pointer.observe(output)
    return [(c.source, c.at, c.match) for c in pointer.continuations(output)]


def test_the_pointer_follows_a_copy() -> None:
    assert followed(list(range(16)), [0, 1, 2]) == [("file", 3, 5)]


def test_after_a_substitution_the_next_token_is_skipped() -> None:
    assert followed([1, 2, 3, 4, 5], [1, 2, 9]) == [("file-replace", 3, 1)]


def test_resync_takes_the_nearest_after_the_departure() -> None:
    text = [5, 1, 5, 2, 3, 5, 4, 5, 6]
    found = followed(text, [5, 1, 5, 9, 5])
    assert found[0] == ("file-resync", 6, 1)


def test_resync_prefers_the_longer_match_and_then_trusts_it() -> None:
    text = [*range(20), 50, 3, 60, 61, 62, 63, 64, 65, 66, 67, 68]
    output = [*range(20), 99, 60, 61, 62, 63, 64, 65, 66, 67]
    assert followed(text, output) == [("file", 30, 8)]


@settings(deadline=None)
@given(few_tokens, st.integers(0, 4), st.integers(0, 50))
def test_positions_equal_a_scan(text: list[int], token: int, start: int) -> None:
    scan = [at for at in range(start, len(text)) if text[at] == token]
    assert list(Positions(text).after(token, start)) == scan


def test_recent_occurrences_offer_each_next_token_once_the_longest_match_first() -> None:
    recent = RecentOccurrences([[1, 2, 7], [3, 2, 8], [2, 7]])
    recent.observe([3, 2])
    found = [(c.next, c.match, c.source) for c in recent.continuations([3, 2])]
    assert found == [(8, 2, "recent-3"), (7, 1, "recent-4")]


def test_survival_moves_with_its_trials_and_a_failure_doubles_a_small_hazard() -> None:
    survival = Survival({"file": [0.99] * 12, "other": [0.5] * 12})
    survival.record("file", 100, right=False)
    assert survival.rate("file", 100) == pytest.approx(1 - 0.01 * 200 / 101)
    assert survival.rate("file", 3) == 0.99
    survival.record("other", 1, right=True)
    assert survival.rate("other", 1) == pytest.approx(5 / 9)


def lookup_by_scanning(tokens: list[int], k: int, n: int) -> list[int]:
    """The rule as transformers states it."""
    for size in range(min(n, len(tokens) - 1), 0, -1):
        for at in range(len(tokens) - size + 1):
            start = at + size
            if tokens[at:start] == tokens[-size:] and start < len(tokens):
                return tokens[start : start + k]
    return []


@settings(deadline=None)
@given(few_tokens, few_tokens, st.integers(1, 8), st.integers(1, 4))
def test_prompt_lookup_equals_a_scan(prompt: list[int], output: list[int], k: int, n: int) -> None:
    lookup = PromptLookup(prompt, k, n)
    lookup.observe(Step(Draft(), (), tuple(output)))
    expected = lookup_by_scanning([*prompt, *output], k, n)
    assert list(lookup.propose(output, 100).tokens) == expected
