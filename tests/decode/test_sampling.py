"""Settings that can't work are refused, and noise depends on its key alone."""

from __future__ import annotations

import pytest

from apply_server.decode.sampling import GREEDY, Purpose, Sampling, noise_key, uniform
from apply_server.errors import InvalidRequest


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"top_p": 0.0}, "top-p"),
        ({"top_p": 1.1}, "top-p"),
        ({"top_k": -1}, "top-k"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"repetition_penalty": 0.0}, "repetition-penalty"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(
    setting: dict[str, float], name: str
) -> None:
    with pytest.raises(InvalidRequest, match=name):
        Sampling(**setting)  # type: ignore[arg-type]


def test_greedy_is_a_temperature_of_zero_and_plain_has_no_penalty_either() -> None:
    assert (GREEDY.greedy, GREEDY.plain) == (True, True)
    penalised = Sampling(repetition_penalty=1.1)
    assert (penalised.greedy, penalised.plain) == (True, False)
    assert not Sampling(temperature=0.1).greedy


def test_keys_differ_by_seed_position_purpose_and_use_and_are_the_same_again() -> None:
    every = [
        noise_key(seed, position, purpose, nth)
        for seed in range(5)
        for position in range(20)
        for purpose in Purpose
        for nth in range(3)
    ]
    assert len(set(every)) == 5 * 20 * 3 * 3
    assert noise_key(2**63 - 1, 10**6, Purpose.DRAW) == noise_key(2**63 - 1, 10**6, Purpose.DRAW)


def test_uniform_numbers_fill_the_unit_interval_evenly() -> None:
    draws = [uniform(noise_key(7, at, Purpose.ACCEPT)) for at in range(20_000)]
    assert 0.0 <= min(draws) < max(draws) < 1.0
    tenths = [sum(int(draw * 10) == tenth for draw in draws) for tenth in range(10)]
    # Chi-squared with 9 degrees of freedom: above 27.9 with probability 0.001.
    assert sum((count - 2000) ** 2 / 2000 for count in tenths) < 27.9
    assert uniform(2**64 - 1) < 1.0
