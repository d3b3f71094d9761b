"""Rates that are learned while drafting: of each kind of guess, and of all guesses together."""

from __future__ import annotations

import pytest

from apply_server.propose.survival import CALIBRATION_TRIALS, UNSURE, Survival

PRIORS = {"copy": [0.5, 0.999], "other": [0.4, 0.999]}


def test_a_rate_follows_its_own_trials() -> None:
    survival = Survival(PRIORS)
    survival.record("copy", 0, right=True)
    assert survival.rate("copy", 0) == pytest.approx(0.5 + 0.5 / 9)
    assert survival.rate("other", 0) == 0.4


def test_guesses_that_fail_lower_every_guess_and_no_copy() -> None:
    survival = Survival(PRIORS)
    for _ in range(20):
        survival.record("other", 0, right=False)
    assert survival.rate("copy", 0) < 0.5 * CALIBRATION_TRIALS / (CALIBRATION_TRIALS + 2)
    assert survival.rates("copy") == [survival.rate("copy", 0), 0.999]


def test_guesses_that_come_true_raise_only_their_own_rate() -> None:
    survival = Survival(PRIORS)
    for _ in range(20):
        survival.record("other", 0, right=True)
    assert survival.rate("copy", 0) == 0.5
    assert survival.rate("other", 0) > 0.8


def test_copies_say_nothing_about_guesses() -> None:
    survival = Survival(PRIORS)
    survival.record("copy", 1, right=False)
    assert survival.rate("copy", 1) >= UNSURE
    assert survival.rate("other", 0) == 0.4
