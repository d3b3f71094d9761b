"""A draft model changes how many passes there are, never what comes out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from apply_server.decode.draft import NoDraft, Proposer
from apply_server.decode.sampling import GREEDY, Sampling
from apply_server.decode.speedup import CostTable
from apply_server.propose.build import DraftSources, model_factory, parse_proposer
from apply_server.propose.draft_model import DraftModel
from apply_server.target.transformers_model import StockNetwork, TransformersTarget
from tests.conftest import TINY_VOCABULARY, tiny_model
from tests.decode.proposers import Hostile
from tests.decode.running import run

PROMPT = [5, 9, 2, 40, 17]
COST = CostTable.synthetic(15)
prompts = st.lists(st.integers(0, TINY_VOCABULARY - 1), min_size=1, max_size=30)
on_models = settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def smaller() -> TransformersTarget:
    """Another model of the same vocabulary."""
    return TransformersTarget(
        StockNetwork(
            tiny_model("qwen2", hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
        ),
        2048,
    )


def spec(
    text: str, model: TransformersTarget, prompt: Sequence[int], sampling: Sampling = GREEDY
) -> Proposer:
    novel = {
        "model": model_factory(model, GREEDY),
        "model:sample": model_factory(model, sampling),
    }
    sources = DraftSources(tuple(prompt[:8]), prompt=tuple(prompt), room=30)
    return parse_proposer(text, novel)(sources, COST)


def test_the_target_as_its_own_draft_model_is_always_right(
    tiny_target: TransformersTarget,
) -> None:
    plain = run(tiny_target, PROMPT, NoDraft(), 27)
    drafted = run(tiny_target, PROMPT, spec("model", tiny_target, PROMPT), 27)
    assert drafted.output == plain.output
    assert drafted.counters.target_passes == 3  # eight drafted tokens and the target's own
    assert drafted.counters.drafted_by == drafted.counters.accepted_by == {"model": 24}


def test_equal_models_accept_every_draw_of_each_other(tiny_target: TransformersTarget) -> None:
    sampling = Sampling(1.0, seed=5)
    proposer = spec("model:sample", tiny_target, PROMPT, sampling)
    drafted = run(tiny_target, PROMPT, proposer, 27, sampling=sampling)
    assert drafted.counters.accepted_tokens == drafted.counters.drafted_tokens == 24


@on_models
@given(
    prompt=prompts,
    sampling=st.builds(Sampling, temperature=st.sampled_from([0.0, 1.0]), seed=st.integers(0, 99)),
    text=st.sampled_from(["model", "auto+model", "suffix+model", "none+model"]),
)
def test_output_is_plain_decodings_with_any_combination(
    tiny_target: TransformersTarget,
    smaller: TransformersTarget,
    prompt: list[int],
    sampling: Sampling,
    text: str,
) -> None:
    plain = run(tiny_target, prompt, NoDraft(), 24, sampling=sampling)
    drafted = run(tiny_target, prompt, spec(text, smaller, prompt), 24, sampling=sampling)
    assert drafted.output == plain.output


@on_models
@given(prompt=prompts, seed=st.integers(0, 1000))
def test_after_any_rollback_it_drafts_what_a_fresh_one_would(
    tiny_target: TransformersTarget, smaller: TransformersTarget, prompt: list[int], seed: int
) -> None:
    plain = run(tiny_target, prompt, NoDraft(), 12).output
    hostile = Hostile(seed, TINY_VOCABULARY, plain)

    class Checked:
        """Drafts what a hostile proposer does; compares the model's drafts on the way."""

        def __init__(self) -> None:
            self.inner = DraftModel(smaller, prompt, 24, GREEDY)
            self.observe = self.inner.observe

        def propose(self, context, limit):  # type: ignore[no-untyped-def]
            fresh = DraftModel(smaller, [*prompt, *context], 24, GREEDY)
            assert self.inner.propose(context, min(limit, 4)) == fresh.propose([], min(limit, 4))
            return hostile.propose(context, limit)

    assert run(tiny_target, prompt, Checked(), 12).output == plain


def test_a_context_too_short_for_the_request_drafts_nothing(
    tiny_target: TransformersTarget,
) -> None:
    short = TransformersTarget(StockNetwork(tiny_model("llama")), context=20)
    plain = run(tiny_target, PROMPT, NoDraft(), 24)
    drafted = run(tiny_target, PROMPT, spec("model", short, PROMPT), 24)
    assert drafted.output == plain.output
    assert drafted.counters.drafted_tokens == 0


def test_a_long_prompt_is_read_over_several_steps() -> None:
    target = TransformersTarget(StockNetwork(tiny_model("llama")), context=2048)
    prompt = [7 + i % 50 for i in range(1200)]
    drafted = run(target, prompt, DraftModel(target, prompt, 10, GREEDY), 10)
    assert drafted.output == run(target, prompt, NoDraft(), 10).output
    # Four chunks of 128 tokens at each of three steps, then all the rest in one.
    assert drafted.counters.blocks == [1, 1, 8]
