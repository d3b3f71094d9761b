"""The target's invariants on tiny random models in float32."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from apply_server.decode.draft import Draft, NoDraft
from apply_server.decode.loop import prefill, step
from apply_server.decode.session import Session
from apply_server.errors import Cancelled, DocumentTooLong, ModelUnavailable
from apply_server.target import support
from apply_server.target.transformers_model import PREFILL_CHUNK, StockNetwork, TransformersTarget
from tests.conftest import TINY_VOCABULARY, tiny_model
from tests.decode.proposers import AlwaysWrong, Hostile, Oracle
from tests.decode.running import StopAt, open_slot, run

prompts = st.lists(st.integers(0, TINY_VOCABULARY - 1), min_size=1, max_size=30)
seeds = st.integers(0, 10_000)
on_models = settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking model runs takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def plain_greedy(target: TransformersTarget, prompt: Sequence[int], count: int) -> list[int]:
    """Greedy output by the model's own forward over the whole text, without any cache."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(support.plain_logits(target.network.model, tokens).argmax()))
    return tokens[len(prompt) :]


def test_plain_decoding_equals_the_models_own_forward(tiny_target: TransformersTarget) -> None:
    prompt = [5, 9, 2, 40, 17]
    assert run(tiny_target, prompt, NoDraft(), 24).output == plain_greedy(tiny_target, prompt, 24)


@on_models
@given(prompt=prompts, seed=seeds)
def test_greedy_output_is_the_same_for_any_proposer(
    tiny_target: TransformersTarget, prompt: list[int], seed: int
) -> None:
    plain = run(tiny_target, prompt, NoDraft(), 20).output
    for proposer in (
        Oracle(plain, 5),
        AlwaysWrong(seed % TINY_VOCABULARY),
        Hostile(seed, TINY_VOCABULARY, plain),
        Hostile(seed, TINY_VOCABULARY),
    ):
        assert run(tiny_target, prompt, proposer, 20).output == plain


@on_models
@given(prompt=prompts, seed=seeds)
def test_the_cache_after_commit_equals_a_fresh_prefill(
    tiny_target: TransformersTarget, prompt: list[int], seed: int
) -> None:
    answer = plain_greedy(tiny_target, prompt, 12)
    slot = open_slot(tiny_target, prompt, 12)
    session = Session(slot, Hostile(seed, TINY_VOCABULARY, answer), StopAt(), 12)
    while session.finish is None:
        step([session], tiny_target)
        fresh = open_slot(tiny_target, [*prompt, *session.output], 12)
        assert slot.cache.length == fresh.cache.length
        torch.testing.assert_close(
            tiny_target.logits_after(slot), tiny_target.logits_after(fresh), rtol=1e-4, atol=1e-4
        )


@on_models
@given(prompt=prompts, seed=seeds)
def test_a_tree_paths_choices_equal_that_path_alone(
    tiny_target: TransformersTarget, prompt: list[int], seed: int
) -> None:
    draft = Hostile(seed, TINY_VOCABULARY).propose([], 9)
    slot = open_slot(tiny_target, prompt, 12)
    whole = tiny_target.verify([(slot, draft)])[0]
    for node in range(len(draft)):
        path = [node]
        while draft.parents[path[0]] >= 0:
            path.insert(0, draft.parents[path[0]])
        alone = tiny_target.verify([(slot, Draft.chain([draft.tokens[i] for i in path]))])[0]
        assert whole.choices[1 + node] == alone.choices[-1]


@on_models
@given(batch=st.lists(st.tuples(prompts, seeds), min_size=2, max_size=4))
def test_a_ragged_batch_equals_its_members_alone(
    tiny_target: TransformersTarget, batch: list[tuple[list[int], int]]
) -> None:
    alone = [run(tiny_target, prompt, NoDraft(), 10).output for prompt, _ in batch]
    sessions = [
        Session(
            open_slot(tiny_target, prompt, 10),
            Hostile(seed, TINY_VOCABULARY, answer),
            StopAt(),
            10,
        )
        for (prompt, seed), answer in zip(batch, alone, strict=True)
    ]
    while running := [session for session in sessions if session.finish is None]:
        before = tiny_target.passes
        step(running, tiny_target)
        assert tiny_target.passes == before + 1
    assert [session.output for session in sessions] == alone


def test_a_long_block_takes_the_other_kernel_and_agrees(tiny_target: TransformersTarget) -> None:
    prompt = [3, 1, 4, 1, 5]
    plain = run(tiny_target, prompt, NoDraft(), 200)
    drafted = run(tiny_target, prompt, Oracle(plain.output, 150), 200)
    assert drafted.output == plain.output
    assert drafted.counters.target_passes == 2


def test_prefill_stops_between_chunks_when_cancelled(tiny_target: TransformersTarget) -> None:
    slot = tiny_target.open([1] * (3 * PREFILL_CHUNK), 10)
    session = Session(slot, NoDraft(), StopAt(), 10, Event())
    chunks = prefill(session, tiny_target)
    assert next(chunks) == PREFILL_CHUNK
    session.cancel.set()
    with pytest.raises(Cancelled):
        next(chunks)
    assert slot.cache.length == PREFILL_CHUNK


def test_a_prompt_beyond_the_context_is_refused_with_both_numbers(
    tiny_target: TransformersTarget,
) -> None:
    with pytest.raises(DocumentTooLong, match=r"about 2058 tokens.*2048") as caught:
        tiny_target.open([1] * 2000, 58)
    assert caught.value.details == {"needed": 2058, "limit": 2048}


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (
            {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 0},
            "sliding_attention",
        ),
        (
            {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}},
            "changes with the length",
        ),
    ],
)
def test_what_cannot_be_rolled_back_is_refused_by_its_configuration(
    overrides: dict[str, object], reason: str
) -> None:
    with pytest.raises(ModelUnavailable, match=reason):
        support.check_config(tiny_model("qwen2", **overrides).config)


def test_what_the_configuration_does_not_tell_is_caught_by_running_it() -> None:
    model = tiny_model("llama")
    layer = model.model.layers[1].self_attn
    plain = layer.forward

    def stateful(hidden_states: torch.Tensor, *args: object, **kwargs: object) -> object:
        output, weights = plain(hidden_states, *args, **kwargs)
        stateful.seen += hidden_states.shape[1]  # type: ignore[attr-defined]
        return output * (1 + 0.05 * stateful.seen), weights  # type: ignore[attr-defined]

    stateful.seen = 0  # type: ignore[attr-defined]
    layer.forward = stateful
    with pytest.raises(ModelUnavailable, match="LlamaForCausalLM"):
        support.check_rollback(model, TransformersTarget(StockNetwork(model), 2048))


def test_sound_models_pass_the_rollback_check(tiny_target: TransformersTarget) -> None:
    support.check_rollback(tiny_target.network.model, tiny_target)
