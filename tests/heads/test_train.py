"""Training: what heads are to guess, that they learn it, and that a run can be resumed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from apply_server.decode.target import UNDECIDED
from apply_server.heads.examples import Examples
from apply_server.heads.train import (
    CHECKPOINT_STEPS,
    Pairs,
    Progress,
    accuracies,
    commonest,
    pairs_of,
    split,
    train,
    vocabulary_of,
)

HIDDEN = 8


def answer(tokens: list[int], asked: list[bool] | None = None) -> Examples:
    """Each state tells its token, a row of the matrix below, and the model would say the same."""
    marks = torch.tensor(asked or [True] * len(tokens))
    return Examples(MATRIX[tokens], torch.tensor(tokens), torch.tensor(tokens), marks)


MATRIX = torch.eye(HIDDEN) * 4
EVERY = torch.arange(HIDDEN)


def test_head_k_guesses_the_choice_k_places_after_the_chosen_one() -> None:
    pairs = pairs_of([answer([3, 1, 4, 5], [True, False, True, True])], EVERY)
    assert pairs.asked.tolist() == [0, 2, 3]
    assert pairs.goals(pairs.asked, 2).tolist() == [[1, 4], [5, -1], [-1, -1]]


def test_goals_are_places_in_the_vocabulary_and_none_crosses_into_the_next_answer() -> None:
    vocabulary = torch.tensor([2, 5, 7])
    pairs = pairs_of([answer([2, 5, 3]), answer([7, 2])], vocabulary)
    assert pairs.goals(pairs.asked, 1).flatten().tolist() == [1, -1, -1, 0, -1]


def test_goals_are_the_models_own_choices_not_what_stands_there() -> None:
    asked = torch.ones(3, dtype=torch.bool)
    tokens, choices = torch.tensor([1, 2, 3]), torch.tensor([1, 6, UNDECIDED])
    pairs = pairs_of([Examples(MATRIX[:3], tokens, choices, asked)], EVERY)
    assert pairs.tokens.tolist() == [1, 2, 3]
    assert pairs.goals(pairs.asked, 1).flatten().tolist() == [6, -1, -1]


def test_the_vocabulary_has_every_token_of_the_answers() -> None:
    kept = vocabulary_of([answer([7, 3]), answer([3])], 100_000)
    assert {3, 7} <= set(kept.tolist())
    assert kept.tolist() == sorted(set(kept.tolist()))
    assert len(kept) < 10_000


def test_every_tenth_answer_is_held_out() -> None:
    answers = [answer([n % HIDDEN]) for n in range(12)]
    training, held_out = split(answers)
    places = {id(one): at for at, one in enumerate(answers)}
    assert [places[id(one)] for one in held_out] == [0, 10]
    assert [places[id(one)] for one in training] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 11]


# States tell their token in the first half, tokens are read from the second.
STATES = torch.cat([MATRIX, torch.zeros_like(MATRIX)], dim=1)
READ = torch.cat([torch.zeros_like(MATRIX), MATRIX], dim=1)


def cycle_pairs() -> Pairs:
    """The rule 0, 1, 2, …, 7, 0, …: guessable from each state."""
    tokens = torch.tensor(list(range(8)) * 4)
    marks = torch.ones(len(tokens), dtype=torch.bool)
    return pairs_of([Examples(STATES[tokens], tokens, tokens, marks)], EVERY)


def cycle(steps: int, checkpoint: Path) -> list[Progress]:
    return list(train(cycle_pairs(), READ, 2, steps, checkpoint))


def test_heads_learn_what_can_be_learnt(tmp_path: Path) -> None:
    pairs = cycle_pairs()
    zeros = (torch.zeros(2, 2 * HIDDEN, 4 * HIDDEN), torch.zeros(2, 2 * HIDDEN))
    assert max(accuracies(pairs, READ, *zeros)) < 0.2
    reports = cycle(2 * CHECKPOINT_STEPS, tmp_path / "state.pt")
    assert reports[-1].loss < reports[0].loss
    first, both = accuracies(pairs, READ, reports[-1].weights, reports[-1].biases)
    # The last state has no token after it, the last two have no second one.
    assert first == pytest.approx(31 / 32)
    assert both == pytest.approx(30 / 32)


def test_an_interrupted_run_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    whole = cycle(2 * CHECKPOINT_STEPS, tmp_path / "whole.pt")
    next(train(cycle_pairs(), READ, 2, 2 * CHECKPOINT_STEPS, tmp_path / "parts.pt"))
    rest = cycle(2 * CHECKPOINT_STEPS, tmp_path / "parts.pt")
    assert [report.done for report in rest] == [2 * CHECKPOINT_STEPS]
    torch.testing.assert_close(rest[-1].weights, whole[-1].weights)
    assert cycle(2 * CHECKPOINT_STEPS, tmp_path / "parts.pt") == []


def test_a_run_with_more_answers_learns_from_all_of_them(tmp_path: Path) -> None:
    state = tmp_path / "state.pt"
    cycle(CHECKPOINT_STEPS, state)
    tokens = torch.tensor([0, 2, 4, 6])
    more = Examples(STATES[tokens], tokens, tokens, torch.ones(4, dtype=torch.bool))
    few = pairs_of([more], EVERY)
    resumed = list(train(few, READ, 2, CHECKPOINT_STEPS, state))
    anew = list(train(few, READ, 2, CHECKPOINT_STEPS, tmp_path / "anew.pt"))
    assert [report.done for report in resumed] == [CHECKPOINT_STEPS]
    torch.testing.assert_close(resumed[-1].weights, anew[-1].weights)


def test_only_places_where_heads_are_asked_count() -> None:
    pairs = pairs_of([answer([1, 1, 2], [True, False, True])], EVERY)
    zeros = (torch.zeros(1, HIDDEN, 2 * HIDDEN), torch.zeros(1, HIDDEN))
    # Heads of zeros say the chosen token again: right after the first 1, and nothing after the 2.
    assert accuracies(pairs, MATRIX, *zeros) == [0.5]
    copied = pairs_of([answer([1, 1], [False, False])], EVERY)
    assert accuracies(copied, MATRIX, *zeros) == [0.0]


def test_guesses_compete_with_the_commonest_goals() -> None:
    pairs = pairs_of([answer([0, 5, 5, 5, 2, 2])], EVERY)
    assert commonest(pairs, 1).tolist()[:2] == [5, 2]
