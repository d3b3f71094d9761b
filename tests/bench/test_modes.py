"""Names of modes → what is run."""

from __future__ import annotations

import pytest

from apply_server.bench.modes import NAMES, Family, Lookup, choose
from apply_server.errors import InvalidRequest


def names(*asked: str) -> list[str]:
    return [mode.name for mode in choose(asked, [32], [3]).modes]


def test_all_modes_have_one_order_whatever_order_they_are_asked_for_in() -> None:
    expected = ["plain", "hf-plain", "hf-lookup", "hf-lookup:k=32,n=3", "ours"]
    assert names(*NAMES) == names(*reversed(NAMES)) == expected


def test_a_mode_asked_for_twice_runs_once() -> None:
    assert names("ours", "plain", "ours") == ["plain", "ours"]


def test_the_best_lookup_stands_for_the_whole_grid() -> None:
    choice = choose(["hf-lookup-best"], [64, 10], [2, 4, 2])
    assert [mode.lookup for mode in choice.modes] == [
        Lookup(10, 2), Lookup(10, 4), Lookup(64, 2), Lookup(64, 4),
    ]  # fmt: skip
    assert choice.tuned == tuple(mode.name for mode in choice.modes)
    assert {mode.family for mode in choice.modes} == {Family.HF}


def test_lookup_alone_has_transformers_own_settings_and_is_not_tuned() -> None:
    choice = choose(["hf-lookup"], [64], [4])
    assert [mode.lookup for mode in choice.modes] == [Lookup(10, 2)]
    assert choice.tuned == ()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["ours", "fast"], "Unknown mode 'fast'. Choose from plain, hf-plain, hf-lookup, hf-"),
        ([], "No mode is named. Choose from plain,"),
    ],
)
def test_an_unknown_mode_is_refused_with_the_known_ones(asked: list[str], message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        choose(asked, [10], [2])
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(("ks", "ns"), [([], [2]), ([10], []), ([0], [2]), ([10], [-1])])
def test_a_grid_of_nothing_is_refused(ks: list[int], ns: list[int]) -> None:
    with pytest.raises(InvalidRequest, match="at least one k and one n"):
        choose(["hf-lookup-best"], ks, ns)


def test_ours_runs_with_any_proposer_after_the_named_modes() -> None:
    chosen = choose(["ours:suffix", "plain", "ours:auto+model", "ours:suffix"], [10], [2]).modes
    assert [(mode.name, mode.proposer) for mode in chosen] == [
        ("plain", "none"),
        ("ours:suffix", "suffix"),
        ("ours:auto+model", "auto+model"),
    ]
