"""Draft heads: which tree is drafted, that output stays the same, and which files are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from apply_server.decode.draft import NO_DRAFT, Draft, NoDraft, Step
from apply_server.decode.sampling import GREEDY, Sampling
from apply_server.decode.speedup import CostTable
from apply_server.errors import ModelUnavailable
from apply_server.propose import head_file
from apply_server.propose.build import DraftSources, heads_factory, parse_proposer
from apply_server.propose.head_file import head_facts, load_heads, save_heads
from apply_server.propose.heads import (
    FORM,
    DraftHeads,
    HeadsProposer,
    grow,
    head_inputs,
    head_states,
)
from apply_server.propose.tree import DraftTree
from apply_server.target.transformers_model import StockNetwork, TransformersTarget
from tests.conftest import TINY_VOCABULARY, tiny_model
from tests.decode.running import run

PROMPT = (5, 9, 2, 40, 17)
CHEAP = CostTable.synthetic(300)
HIDDEN = 32


@pytest.fixture(scope="module")
def target() -> TransformersTarget:
    return TransformersTarget(StockNetwork(tiny_model("llama")), context=2048)


def heads(target: TransformersTarget, count: int = 3) -> DraftHeads:
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(count, HIDDEN, 2 * HIDDEN, generator=generator) * 0.1
    return DraftHeads(weights, torch.zeros(count, HIDDEN), target.network.project, row)


def row(token: int) -> torch.Tensor:
    """The output matrix's."""
    return torch.randn(HIDDEN, generator=torch.Generator().manual_seed(token))


def test_a_head_of_zeros_says_what_the_target_says_but_for_the_chosen_token() -> None:
    rows = torch.eye(HIDDEN)
    states = torch.randn(5, HIDDEN, generator=torch.Generator().manual_seed(2)).abs()
    zeros = DraftHeads(
        torch.zeros(2, HIDDEN, 2 * HIDDEN),
        torch.zeros(2, HIDDEN),
        lambda h: h @ rows.T,
        rows.__getitem__,
    )
    for state in states:
        first, second = state.topk(2).indices.tolist()
        assert [guesses[0][0] for guesses in zeros.guesses(state, first)] == [second, second]
        assert [guesses[0][0] for guesses in zeros.guesses(state, second)] == [first, first]


def test_a_heads_state_is_what_is_unsaid_plus_silu_of_what_it_is_given() -> None:
    h, e = torch.tensor([[1.0, -2.0]]), torch.tensor([[0.3, 0.4]])
    w, b = torch.tensor([[0.5, 1.0, 0.0, 2.0], [2.0, 0.0, 1.0, 0.0]]), torch.tensor([1.0, 0.0])
    size = (0.25 / 2) ** 0.5  # the row's root mean square
    given = torch.cat([h[0], e[0] / size])
    inputs = head_inputs(h, e)
    torch.testing.assert_close(inputs[0], given)
    unsaid = h[0] - (h[0] @ e[0]) / (e[0] @ e[0]) * e[0]
    torch.testing.assert_close(unsaid @ e[0], torch.tensor(0.0))
    expected = unsaid + torch.nn.functional.silu(w @ given + b)
    torch.testing.assert_close(head_states(inputs, w[None], b[None])[0, 0], expected)
    medusas = h[0] + torch.nn.functional.silu(w[:, :2] @ h[0] + b)
    torch.testing.assert_close(head_states(h, w[None, :, :2], b[None])[0, 0], medusas)


def test_guesses_hang_on_the_chosen_token(target: TransformersTarget) -> None:
    state = torch.ones(HIDDEN)
    assert heads(target).guesses(state, 3) != heads(target).guesses(state, 4)


def test_the_tree_holds_the_likeliest_paths_first() -> None:
    guesses = [[(1, 0.6), (2, 0.3)], [(7, 0.5), (8, 0.4)]]
    tree = DraftTree([0.001] * 5)
    reaches = grow(tree, guesses, 1.0)
    assert list(zip(tree.tokens, tree.parents, strict=True)) == [
        (1, -1), (2, -1), (7, 0), (8, 0), (7, 1),
    ]  # fmt: skip
    assert reaches == pytest.approx([0.6, 0.3, 0.3, 0.24, 0.15])


def test_what_costs_more_than_it_brings_is_left_out() -> None:
    guesses = [[(1, 0.6), (2, 0.3)], [(7, 0.5), (8, 0.4)]]
    tree = DraftTree([0.5] * 5)
    grow(tree, guesses, 1.0)
    assert tree.tokens == [1]
    tree = DraftTree([0.5] * 5)
    assert grow(tree, guesses, 0.5) == []


def test_output_is_plain_decodings_and_heads_are_counted(target: TransformersTarget) -> None:
    for sampling in (GREEDY, Sampling(1.0, seed=2)):
        plain = run(target, PROMPT, NoDraft(), 24, sampling=sampling)
        for spec in ("heads", "auto+heads"):
            make = parse_proposer(spec, {"heads": heads_factory(heads(target))})
            drafted = run(target, PROMPT, make(DraftSources(PROMPT), CHEAP), 24, sampling=sampling)
            assert drafted.output == plain.output
            assert drafted.counters.drafted_by["heads"] > 0


def test_the_newest_state_is_used_and_each_once(target: TransformersTarget) -> None:
    proposer = HeadsProposer(heads(target), CHEAP, 8)
    assert proposer.propose([1], 9) == NO_DRAFT  # nothing has been computed yet
    old, new = torch.zeros(HIDDEN), torch.ones(HIDDEN)
    proposer.observe(Step(NO_DRAFT, (), (3, 4), (old, new)))
    wanted = [guesses[0][0] for guesses in heads(target).guesses(new, 4)]
    assert proposer.propose([3, 4], 1).tokens == (wanted[0],)
    proposer.observe(Step(Draft(), (), (3,)))
    assert proposer.propose([3, 4, 3], 9) == NO_DRAFT  # a target that tells no states


def test_claims_that_do_not_hold_make_drafts_shorter(target: TransformersTarget) -> None:
    proposer = HeadsProposer(heads(target), CHEAP, 16)
    state = torch.ones(HIDDEN)
    proposer.observe(Step(NO_DRAFT, (), (3,), (state,)))
    first = proposer.propose([3], 16)
    for _ in range(30):
        proposer.observe(Step(proposer.propose([3], 16), (), (3,), (state,)))
    assert len(proposer.propose([3], 16)) < len(first)


def test_heads_come_back_as_they_were_with_their_facts(
    target: TransformersTarget, tmp_path: Path
) -> None:
    made, path = heads(target), tmp_path / "new" / "heads.safetensors"
    save_heads(path, made.weights, made.biases, {"steps": "7"}, "these weights")
    loaded = load_heads(path, "these weights", target.network.project, row)
    torch.testing.assert_close(loaded.weights, made.weights)
    assert head_facts(path) == {"steps": "7", "model": "these weights", "formula": FORM}
    with pytest.raises(ModelUnavailable, match="another model"):
        load_heads(path, "other weights", target.network.project, row)


def test_heads_that_computed_something_else_are_refused(
    target: TransformersTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, path = heads(target), tmp_path / "heads.safetensors"
    monkeypatch.setattr(head_file, "FORM", "h + SiLU(W[h, e] + b)")
    save_heads(path, made.weights, made.biases, {}, "these weights")
    monkeypatch.undo()
    with pytest.raises(ModelUnavailable, match="another version of this program"):
        load_heads(path, "these weights", target.network.project, row)


def test_heads_of_another_shape_are_refused_with_the_reason(
    target: TransformersTarget, tmp_path: Path
) -> None:
    path = tmp_path / "heads.safetensors"
    save_heads(path, torch.zeros(2, 8, 8), torch.zeros(2, 8), {}, "m")
    with pytest.raises(ModelUnavailable, match="don't fit this model"):
        load_heads(path, "m", target.network.project, row)
    path.write_bytes(b"no tensors")
    with pytest.raises(ModelUnavailable, match="can't be read"):
        load_heads(path, "m", target.network.project, row)
    with pytest.raises(ModelUnavailable, match="can't be read"):
        load_heads(tmp_path / "absent.safetensors", "m", target.network.project, row)


def test_a_medusa_checkpoint_brings_its_own_output_matrices(
    target: TransformersTarget, tmp_path: Path
) -> None:
    matrix = torch.randn(TINY_VOCABULARY, HIDDEN, generator=torch.Generator().manual_seed(3))
    tensors = {
        "0.0.linear.weight": torch.zeros(HIDDEN, HIDDEN),
        "0.0.linear.bias": torch.zeros(HIDDEN),
        "0.1.weight": matrix,
    }
    path = tmp_path / "medusa_lm_head.pt"
    torch.save(tensors, path)
    loaded = load_heads(path, "whichever", target.network.project, row)
    state = torch.ones(HIDDEN)
    assert loaded.guesses(state, 3)[0][0][0] == int((matrix @ state).argmax())
    torch.save(tensors | {"0.1.linear.weight": torch.zeros(HIDDEN, HIDDEN)}, path)
    with pytest.raises(ModelUnavailable, match="more than one residual layer"):
        load_heads(path, "whichever", target.network.project, row)
