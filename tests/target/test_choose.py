"""Choices from logits: transformers' own processors as the oracle, and exact distributions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from apply_server.decode.draft import NO_DRAFT, Draft
from apply_server.decode.sampling import Purpose, Sampling, noise_key
from apply_server.target.choose import (
    Asked,
    accepts,
    choose,
    distribution,
    draw,
    penalised,
    residual,
)
from tests.decode.proposers import Hostile

VOCABULARY = 300
# The rest of a chi-squared distribution above these is 0.001, by degrees of freedom.
CHI_SQUARED = {2: 13.82, 8: 26.12}


def random_logits(seed: int, rows: int, vocabulary: int = VOCABULARY) -> torch.Tensor:
    return torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * 3


def path_of(draft: Draft, node: int) -> list[int]:
    path: list[int] = []
    while node >= 0:
        path.insert(0, draft.tokens[node])
        node = draft.parents[node]
    return path


def transformers_distribution(
    row: torch.Tensor, prefix: Sequence[int], sampling: Sampling
) -> torch.Tensor:
    """What generate() would sample from after `prefix`."""
    steps = LogitsProcessorList()
    if sampling.repetition_penalty != 1.0:
        steps.append(RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty))
    steps.append(TemperatureLogitsWarper(sampling.temperature))
    if sampling.top_k:
        steps.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p < 1.0:
        steps.append(TopPLogitsWarper(sampling.top_p))
    return steps(torch.tensor([list(prefix)]), row[None].clone())[0].softmax(-1)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    prefix=st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=20),
    sampling=st.builds(
        Sampling,
        temperature=st.sampled_from([0.2, 0.7, 1.0, 1.7, 5.0]),
        top_k=st.sampled_from([0, 1, 5, 40, VOCABULARY, 1000]),
        top_p=st.sampled_from([1.0, 0.999, 0.9, 0.3, 0.001]),
        repetition_penalty=st.sampled_from([1.0, 1.3, 0.8]),
    ),
)
def test_every_row_of_a_tree_is_processed_as_transformers_would_after_its_own_path(
    seed: int, prefix: list[int], sampling: Sampling
) -> None:
    draft = Hostile(seed, VOCABULARY).propose([], 9)
    logits = random_logits(seed, 1 + len(draft))
    ours = distribution(logits, Asked(prefix, draft, sampling))
    for node in range(-1, len(draft)):
        whole = [*prefix, *path_of(draft, node)]
        expected = transformers_distribution(logits[1 + node], whole, sampling)
        torch.testing.assert_close(ours[1 + node], expected, rtol=1e-4, atol=1e-6)


def test_a_nucleus_wider_than_the_first_guess_is_whole() -> None:
    flat = Asked([0], NO_DRAFT, Sampling(1.0, top_p=0.9))
    kept = distribution(torch.zeros(1, 5000), flat)
    assert int((kept > 0).sum()) == pytest.approx(4500, abs=2)
    torch.testing.assert_close(kept.sum(), torch.tensor(1.0))


def test_a_greedy_choice_is_penalised_by_its_own_path() -> None:
    logits = torch.tensor([[3.0, 2.9, -1.0]]).repeat(4, 1)
    tree = Draft((0, 1, 0), (-1, -1, 1))  # paths: (), (0), (1), (1, 0)
    asked = Asked([2], tree, Sampling(repetition_penalty=2.0))
    assert choose(logits, [asked])[0].choices == (0, 1, 0, 0)
    assert penalised(logits, asked)[3].tolist() == [1.5, pytest.approx(1.45), -2.0]


def test_each_slot_is_chosen_by_its_own_settings() -> None:
    logits = torch.tensor([[0.0, 5.0, 1.0]]).repeat(3, 1)
    plain, penalised_one = Sampling(), Sampling(repetition_penalty=50.0)
    asked = [Asked([1], NO_DRAFT, plain), Asked([1], Draft.chain([2]), penalised_one)]
    assert [v.choices for v in choose(logits, asked)] == [(1,), (2, 1)]


@pytest.mark.parametrize("row", [[float("-inf")] * 4, [float("-inf"), 0.0, 0.0, float("-inf")]])
def test_minus_infinity_is_never_drawn_unless_nothing_else_is_there(row: list[float]) -> None:
    finite = [i for i, value in enumerate(row) if value == 0.0] or list(range(4))
    drawn = {
        choose(torch.tensor([row]), [Asked([0], NO_DRAFT, Sampling(1.0, seed=seed))])[0].choices[0]
        for seed in range(200)
    }
    assert sorted(drawn) == finite


def test_draws_follow_the_distribution() -> None:
    p = torch.tensor([[0.7, 0.2, 0.1]])
    keys = [noise_key(3, at, Purpose.DRAW) for at in range(20_000)]
    counts = Counter(draw(p.expand(len(keys), 3), keys).tolist())
    assert chi_squared(counts, {0: 0.7, 1: 0.2, 2: 0.1}, 20_000) < CHI_SQUARED[2]


def test_the_same_position_draws_the_same_token_whatever_the_block() -> None:
    sampling = Sampling(1.3, seed=5)
    logits = random_logits(1, 6)
    tokens = [4, 8, 15, 16, 23]
    block = choose(logits, [Asked([9], Draft.chain(tokens), sampling)])[0].choices
    for at in range(6):
        alone = Asked([9, *tokens[:at]], NO_DRAFT, sampling)
        assert choose(logits[at : at + 1], [alone])[0].choices == (block[at],)


@pytest.mark.parametrize(
    ("p", "q", "u", "accepted"),
    [
        (0.5, 0.5, 0.999999, True),  # p = q: always
        (0.0, 0.3, 0.0, False),  # p = 0: never
        (0.0, 0.0, 0.5, False),
        (0.3, 0.0, 0.999999, True),  # q = 0: p/q is infinite
        (0.2, 0.4, 0.499, True),
        (0.2, 0.4, 0.501, False),
        (1.0, 1.0, 0.999999, True),
    ],
)
def test_a_draw_is_accepted_with_min_1_p_over_q(
    p: float, q: float, u: float, accepted: bool
) -> None:
    assert accepts(p, q, u) is accepted


def test_the_residual_is_what_is_left_of_p_normalised() -> None:
    left = residual(torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.2, 0.6]))
    torch.testing.assert_close(left, torch.tensor([0.75, 0.25, 0.0]))


def test_the_residual_of_equal_or_larger_q_is_p() -> None:
    p = torch.tensor([0.5, 0.5, 0.0])
    torch.testing.assert_close(residual(p, p), p)
    torch.testing.assert_close(residual(p, torch.ones(3)), p)


def sampled_step(p: Sequence[float], qs: Sequence[Sequence[float]], seed: int) -> int:
    """One token by way of drafts drawn from `qs`, siblings at the root."""
    key = [noise_key(seed, 1, Purpose.DRAFT, nth) for nth in range(len(qs))]
    drawn = draw(torch.tensor(qs), key).tolist()
    tokens = list(dict.fromkeys(drawn))  # children of one node differ
    q = tuple(qs[drawn.index(token)] for token in tokens)
    draft = Draft(tuple(tokens), (-1,) * len(tokens), q=q)
    logits = torch.tensor([p]).log().expand(1 + len(tokens), -1)
    return choose(logits, [Asked([0], draft, Sampling(1.0, seed=seed))])[0].choices[0]


def chi_squared(counts: Counter[int], expected: dict[int, float], draws: int) -> float:
    return sum((counts[x] - draws * p) ** 2 / (draws * p) for x, p in expected.items() if p)


P, Q = (0.5, 0.3, 0.2), (0.2, 0.2, 0.6)


def test_one_sampled_step_has_the_targets_distribution() -> None:
    counts = Counter(sampled_step(P, [Q], seed) for seed in range(40_000))
    assert [counts[x] / 40_000 for x in range(3)] == pytest.approx(P, abs=0.01)
    assert chi_squared(counts, dict(enumerate(P)), 40_000) < CHI_SQUARED[2]


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (
            (0.0, 0.4, 0.6),
            (0.9, 0.1, 0.0),
        ),  # drafts what the target never says, misses what it says
        ((0.2, 0.3, 0.5), (0.2, 0.3, 0.5)),
        ((1.0, 0.0, 0.0), (0.3, 0.3, 0.4)),
        ((0.3, 0.3, 0.4), (0.0, 1.0, 0.0)),
    ],
)
def test_zeros_equal_and_one_hot_distributions_are_exact_too(
    p: Sequence[float], q: Sequence[float]
) -> None:
    counts = Counter(sampled_step(p, [q], seed) for seed in range(10_000))
    assert {x for x in counts if p[x] == 0.0} == set()
    assert chi_squared(counts, dict(enumerate(p)), 10_000) < CHI_SQUARED[2]


def test_equal_distributions_accept_every_draft() -> None:
    for seed in range(300):
        (drafted,) = draw(torch.tensor([P]), [noise_key(seed, 9, Purpose.DRAFT)]).tolist()
        draft = Draft.chain([drafted], q=[P])
        logits = torch.tensor([P]).log().expand(2, -1)
        verdict = choose(logits, [Asked([0], draft, Sampling(1.0, seed=seed))])[0]
        assert verdict.choices[0] == drafted


def test_a_rejected_draw_takes_its_correction_from_the_rejected_row() -> None:
    rows = torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]).log()
    draft = Draft.chain([1], q=[(0.0, 1.0, 0.0)])
    assert choose(rows, [Asked([0], draft, Sampling(1.0))])[0].choices == (2, 0)


def test_greedy_choices_ignore_how_a_draft_was_drawn() -> None:
    rows = torch.tensor([P, P])
    draft = Draft.chain([2], q=[Q])
    assert choose(rows, [Asked([0], draft, Sampling())])[0].choices == (0, 0)
