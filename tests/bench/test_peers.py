"""transformers' generate as a peer: our tokens, our end, every pass counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from apply_server.bench.modes import Lookup
from apply_server.bench.peers import Peer, environment
from apply_server.bench.runs import Pass, Run
from apply_server.errors import ModelUnavailable
from tests.bench.support import Until
from tests.conftest import FAMILIES, TINY_VOCABULARY, tiny_model
from tests.engine.support import save_model

PROMPT = [3, 4, 5, 6, 3, 4, 5]
LOOKUPS = (None, Lookup(), Lookup(4, 1), Lookup(32, 3))


def peer(family: str = "llama", eos: frozenset[int] = frozenset(), **settings: Any) -> Peer:
    return Peer(tiny_model(family, attn_implementation="sdpa", **settings), eos)


def greedy(model: Any, prompt: Sequence[int], count: int) -> tuple[int, ...]:
    """The slow and obvious way: all tokens anew for every next one."""
    import torch

    tokens = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            tokens.append(
                int(model(torch.tensor([tokens]), use_cache=False).logits[0, -1].argmax())
            )
    return tuple(tokens[len(prompt) :])


def emitted(run: Run) -> int:
    return sum(each.emitted for each in run.passes)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lookup", LOOKUPS)
def test_the_output_is_greedy_and_ends_where_the_stop_rule_says(
    family: str, lookup: Lookup | None
) -> None:
    made = peer(family)
    expected = greedy(made.model, PROMPT, 30)
    for count in (1, 2, 17, 30):
        run = made.generate(PROMPT, 60, Until(count), lookup)
        assert run.output == expected[:count]
        assert (run.stopped, run.prompt_tokens, emitted(run)) == (True, len(PROMPT), count)


def test_plain_generate_makes_one_pass_for_each_token() -> None:
    assert peer().generate(PROMPT, 60, Until(9), None).passes == (Pass(0, 1),) * 9


class Constant:
    """A model whose answer is one token for ever: a single row of logits decides."""

    def __new__(cls, token: int) -> Any:
        import torch

        model = tiny_model("llama", attn_implementation="sdpa")
        model.lm_head.weight.data.zero_()
        model.model.norm.weight.data.zero_()
        model.lm_head.bias = torch.nn.Parameter(torch.zeros(TINY_VOCABULARY))
        model.lm_head.bias.data[token] = 1.0
        return model


def test_drafts_and_what_of_them_was_emitted_are_counted_pass_by_pass() -> None:
    run = Peer(Constant(9), frozenset()).generate([9, 9, 9, 9, 9], 60, Until(9), Lookup(3, 2))
    # The leftmost match of two is at the start, so three are drafted, the first in prefill.
    assert run.passes == (Pass(3, 4), Pass(3, 4), Pass(3, 1))
    assert run.output == (9,) * 9


def test_tokens_after_an_end_in_the_middle_of_a_block_are_no_output() -> None:
    run = Peer(Constant(9), frozenset()).generate([9] * 5, 60, Until(6), Lookup(3, 2))
    assert (run.output, emitted(run)) == ((9,) * 6, 6)
    assert run.stopped


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_the_cap_is_kept_exactly_and_is_no_stop(lookup: Lookup | None) -> None:
    run = Peer(Constant(9), frozenset()).generate([9] * 5, 11, Until(50), lookup)
    assert (run.output, run.stopped, emitted(run)) == ((9,) * 11, False, 11)


def test_the_end_of_sequence_ends_generate_where_it_ends_ours() -> None:
    class Eos:
        def ends(self, token: int) -> bool:
            return token == 9

    run = Peer(Constant(9), frozenset({9})).generate([9] * 5, 11, Eos(), Lookup(3, 2))
    assert (run.output, run.stopped) == ((9,), True)


def test_a_models_own_generation_settings_are_left_out() -> None:
    made = peer()
    model = tiny_model("llama", attn_implementation="sdpa")
    model.generation_config.update(
        do_sample=True, temperature=5.0, repetition_penalty=3.0, no_repeat_ngram_size=1,
        max_length=9,
    )  # fmt: skip
    spoilt = Peer(model, frozenset())
    for lookup in LOOKUPS:
        expected = made.generate(PROMPT, 20, Until(20), lookup)
        assert spoilt.generate(PROMPT, 20, Until(20), lookup).output == expected.output


def test_hooks_are_gone_afterwards_and_times_are_there() -> None:
    made = peer()
    run = made.generate(PROMPT, 4, Until(4), None)
    assert not made.model._forward_hooks
    assert not made.model._forward_pre_hooks
    assert run.prefill_s > 0
    assert run.decode_s > 0


def test_peers_are_the_stock_model(tmp_path: Path) -> None:
    import torch

    made = Peer.load(save_model(tmp_path), "cpu", "float32", frozenset({258}))
    linears = [m for m in made.model.modules() if isinstance(m, torch.nn.Linear)]
    assert linears
    assert all("forward" not in vars(layer) and layer.weight.numel() for layer in linears)
    assert made.model.config._attn_implementation == "sdpa"
    assert made.model.dtype == torch.float32


def test_a_folder_without_a_model_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="peers' copy of"):
        Peer.load(tmp_path, "cpu", "float32", frozenset())


def test_the_environment_says_what_figures_depend_on() -> None:
    facts = environment("cpu", "float32")
    assert (facts["device"], facts["peers_dtype"]) == ("cpu", "float32")
    assert set(facts) == {"device", "peers_dtype", "threads", "torch", "transformers"}
