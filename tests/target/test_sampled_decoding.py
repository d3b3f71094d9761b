"""Sampled decoding on tiny models in float32: drafts change how often the target is run, not what.

Point-mass drafts give plain sampling's output token for token; drafts that were drawn from a
distribution of their own give the target's distribution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from apply_server.decode.draft import Draft, NoDraft, Proposer, Step
from apply_server.decode.loop import step
from apply_server.decode.sampling import Purpose, Sampling, noise_key
from apply_server.decode.session import Session
from apply_server.target import support
from apply_server.target.choose import Asked, distribution, draw
from apply_server.target.transformers_model import StockNetwork, TransformersTarget
from tests.conftest import TINY_VOCABULARY, tiny_model
from tests.decode.proposers import AlwaysWrong, Hostile, Oracle
from tests.decode.running import StopAt, open_slot, run

PROMPT = (5, 9, 2, 40, 17)
COUNT = 8
SEEDS = 500
prompts = st.lists(st.integers(0, TINY_VOCABULARY - 1), min_size=1, max_size=20)
seeds = st.integers(0, 2**63 - 1)
policies = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    top_p=st.sampled_from([1.0, 0.9, 0.5]),
    top_k=st.sampled_from([0, 3, 20]),
    seed=seeds,
    repetition_penalty=st.sampled_from([1.0, 1.5]),
)
on_models = settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking model runs takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def together(
    target: TransformersTarget, work: Sequence[tuple[Sequence[int], Proposer, Sampling]], count: int
) -> list[list[int]]:
    """The outputs of all sessions, decoded as one ragged batch."""
    sessions = [
        Session(open_slot(target, prompt, count, sampling), proposer, StopAt(), count)
        for prompt, proposer, sampling in work
    ]
    while running := [session for session in sessions if session.finish is None]:
        step(running, target)
    return [session.output for session in sessions]


def proposers(answer: Sequence[int], seed: int) -> list[Proposer]:
    return [
        Oracle(answer, 3),
        AlwaysWrong(seed % TINY_VOCABULARY),
        Hostile(seed, TINY_VOCABULARY, answer),
        Hostile(seed, TINY_VOCABULARY),
    ]


def test_drafts_leave_sampled_output_unchanged_for_500_seeds(
    tiny_target: TransformersTarget,
) -> None:
    policies = [Sampling(1.0, seed=seed) for seed in range(SEEDS)]
    plain = together(tiny_target, [(PROMPT, NoDraft(), policy) for policy in policies], COUNT)
    assert len({tuple(output) for output in plain}) > SEEDS // 2, "the seed chooses the output"
    drafted = together(
        tiny_target,
        [
            (PROMPT, proposers(output, seed)[seed % 4], policies[seed])
            for seed, output in enumerate(plain)
        ],
        COUNT,
    )
    assert drafted == plain


@on_models
@given(prompt=prompts, policy=policies)
def test_output_is_plain_samplings_for_any_proposer_and_any_setting(
    tiny_target: TransformersTarget, prompt: list[int], policy: Sampling
) -> None:
    plain = run(tiny_target, prompt, NoDraft(), 16, sampling=policy).output
    for proposer in proposers(plain, policy.seed):
        assert run(tiny_target, prompt, proposer, 16, sampling=policy).output == plain


@on_models
@given(batch=st.lists(st.tuples(prompts, policies), min_size=2, max_size=4))
def test_a_batch_of_different_settings_equals_its_members_alone(
    tiny_target: TransformersTarget, batch: list[tuple[list[int], Sampling]]
) -> None:
    alone = [run(tiny_target, p, NoDraft(), COUNT, sampling=s).output for p, s in batch]
    work = [
        (prompt, Hostile(policy.seed, TINY_VOCABULARY, answer), policy)
        for (prompt, policy), answer in zip(batch, alone, strict=True)
    ]
    assert together(tiny_target, work, COUNT) == alone


def test_plain_sampling_is_the_models_own_forward_and_the_keyed_noise() -> None:
    target = TransformersTarget(StockNetwork(tiny_model("llama")), context=2048)
    policy = Sampling(0.8, top_p=0.9, top_k=30, seed=11, repetition_penalty=1.2)
    tokens = list(PROMPT)
    for _ in range(COUNT):
        logits = support.plain_logits(target.network.model, tokens)[None]
        p = distribution(logits, Asked(tokens, Draft(), policy))
        tokens += draw(p, [noise_key(11, len(tokens), Purpose.DRAW)]).tolist()
    output = run(target, PROMPT, NoDraft(), COUNT, sampling=policy).output
    assert output == tokens[len(PROMPT) :]


def test_right_drafts_save_passes_when_sampling_too(tiny_target: TransformersTarget) -> None:
    policy = Sampling(1.0, seed=3)
    plain = run(tiny_target, PROMPT, NoDraft(), 24, sampling=policy)
    drafted = run(tiny_target, PROMPT, Oracle(plain.output, 5), 24, sampling=policy)
    assert drafted.output == plain.output
    assert (plain.counters.target_passes, drafted.counters.target_passes) == (24, 4)


class Drawing:
    """Drafts a chain or siblings, drawn from a distribution that has little to do with the
    target's.
    """

    def __init__(self, seed: int, vocabulary: int, siblings: bool) -> None:
        self.q = torch.softmax(torch.arange(vocabulary) % 3 * 0.7, 0)
        self.seed = seed
        self.siblings = siblings
        self.drawn = 0

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        count = min(limit, 2)
        if not self.siblings:
            return Draft.chain([self._draw(self.q) for _ in range(count)], q=[self.q] * count)
        tokens: list[int] = []
        drawn_from: list[torch.Tensor] = []
        left = self.q
        for _ in range(count):
            drawn_from.append(left)
            tokens.append(self._draw(left))
            left = left.clone()
            left[tokens[-1]] = 0.0
            left = left / left.sum()
        return Draft(tuple(tokens), (-1,) * count, q=tuple(drawn_from))

    def observe(self, step: Step) -> None:
        pass

    def _draw(self, q: torch.Tensor) -> int:
        self.drawn += 1
        return int(draw(q[None], [noise_key(self.seed, self.drawn, Purpose.DRAFT)]))


def exact_pairs(target: TransformersTarget, policy: Sampling) -> dict[tuple[int, int], float]:
    """The probability of every two-token output."""

    def next_token(tokens: Sequence[int]) -> list[float]:
        logits = support.plain_logits(target.network.model, list(tokens))[None]
        probabilities: list[float] = distribution(logits, Asked(tokens, Draft(), policy))[
            0
        ].tolist()
        return probabilities

    first = next_token(PAIR_PROMPT)
    then = [next_token((*PAIR_PROMPT, token)) for token in range(len(first))]
    return {(a, b): first[a] * then[a][b] for a, b in product(range(len(first)), repeat=2)}


PAIR_PROMPT = (1,)
DRAWS = 4000
# Outputs rarer than this are counted together, so that the statistic has its distribution.
RARE = 5 / DRAWS


@pytest.mark.parametrize("family", ["llama", "qwen2"])
@pytest.mark.parametrize("siblings", [False, True])
def test_drawn_drafts_leave_the_distribution_of_two_token_outputs(
    family: str, siblings: bool
) -> None:
    target = TransformersTarget(StockNetwork(tiny_model(family, vocab_size=4)), context=64)
    policy = Sampling(1.5, repetition_penalty=1.2)
    expected = exact_pairs(target, policy)
    work = [
        (PAIR_PROMPT, Drawing(seed, 4, siblings), Sampling(1.5, seed=seed, repetition_penalty=1.2))
        for seed in range(DRAWS)
    ]
    pairs = Counter(
        tuple(output)
        for at in range(0, DRAWS, 500)
        for output in together(target, work[at : at + 500], 3)
        for output in [output[:2]]
    )
    common = {pair: p for pair, p in expected.items() if p >= RARE}
    rare = DRAWS * (1 - sum(common.values()))
    rare_seen = DRAWS - sum(pairs[pair] for pair in common)
    statistic = sum((pairs[x] - DRAWS * p) ** 2 / (DRAWS * p) for x, p in common.items())
    statistic += (rare_seen - rare) ** 2 / max(rare, 1.0)
    # At most 16 cells: 15 degrees of freedom, exceeded with probability 0.001.
    assert statistic < 37.70
