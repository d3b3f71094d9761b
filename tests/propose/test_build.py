"""What the assembled proposers achieve on known answers, and which specifications there are."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.decode.draft import NoDraft
from apply_server.decode.speedup import CostTable
from apply_server.errors import InvalidRequest
from apply_server.propose.build import DraftSources, build_proposer, parse_proposer
from tests.propose.replaying import replay

CPU = CostTable.synthetic(15)
GPU = CostTable.synthetic(300)
FILE = tuple(range(1000, 3000))
TOKENS = st.lists(st.integers(0, 5), max_size=80).map(tuple)


def test_a_perfect_merge_needs_only_full_chunks() -> None:
    answer = FILE[:900] + tuple(range(50)) + FILE[900:]
    drafts = replay(answer, build_proposer(DraftSources(FILE, (), answer), GPU))
    assert len(drafts) == 4
    assert sum(map(len, drafts)) == len(answer) - len(drafts)


def test_a_departure_from_the_merge_costs_one_pass_per_new_token_and_one_to_resync() -> None:
    new = (1, 2, 3)
    answer = FILE[:900] + new + FILE[903:]
    perfect = len(replay(FILE, build_proposer(DraftSources(FILE, (), FILE), GPU)))
    drafts = replay(answer, build_proposer(DraftSources(FILE, (), FILE), GPU))
    assert len(drafts) <= perfect + len(new) + 3


def test_an_insertion_resyncs_nearest_after_the_departure_not_leftmost() -> None:
    line = (7, 8, 9)
    original = tuple(t for i in range(60) for t in (*line, 100 + i, 200 + i))
    answer = (*original[:150], 1, 2, *original[150:])
    drafts = replay(answer, build_proposer(DraftSources(original), CPU))
    plain = replay(original, build_proposer(DraftSources(original), CPU))
    assert len(drafts) <= len(plain) + 6


def test_nothing_in_common_drafts_almost_nothing() -> None:
    drafts = replay(tuple(range(500)), build_proposer(DraftSources(FILE), CPU))
    assert len(drafts) <= 500
    assert sum(CPU.cost(1 + len(draft)) for draft in drafts) <= 500 / 0.97


@pytest.mark.parametrize("alphabet", [20, 40, 200])
@pytest.mark.parametrize("seed", range(4))
def test_a_novel_text_that_keeps_repeating_tokens_drafts_almost_nothing(alphabet, seed):
    """Every token has followed others before, so that each kind of guess has something to offer."""
    draw = Random(seed)
    answer = tuple(max(FILE) + 1 + draw.randrange(alphabet) for _ in range(500))
    drafts = replay(answer, build_proposer(DraftSources(FILE), CPU))
    assert sum(CPU.cost(1 + len(draft)) for draft in drafts) <= 500 / 0.97


def test_code_of_the_snippet_is_copied_where_there_is_no_merge() -> None:
    snippet = tuple(range(100))
    answer = FILE[:300] + snippet + FILE[300:600]
    drafts = replay(answer, build_proposer(DraftSources(FILE[:600], snippet), GPU))
    assert len(drafts) <= 12


@settings(deadline=None)
@given(TOKENS, TOKENS, TOKENS, TOKENS, st.sampled_from([1.0, 15.0, 300.0]))
def test_every_draft_is_a_tree_within_the_limit_with_its_main_path_first(
    original: tuple[int, ...],
    snippet: tuple[int, ...],
    merged: tuple[int, ...],
    answer: tuple[int, ...],
    rho: float,
) -> None:
    sources = DraftSources(original, snippet, merged)
    drafts = replay((*answer, 9), build_proposer(sources, CostTable.synthetic(rho)))
    for draft in drafts:
        assert len(draft) <= len(answer)
        assert len(draft.tokens) == len(draft.parents)
        assert all(-1 <= parent < i for i, parent in enumerate(draft.parents))
        edges = list(zip(draft.parents, draft.tokens, strict=True))
        assert len(set(edges)) == len(edges)
        main = next((i for i, p in enumerate(draft.parents) if p != i - 1), len(draft))
        assert main - 1 not in draft.parents[main:]


def test_the_same_request_twice_gives_the_same_drafts() -> None:
    answer = (*FILE[:300], 1, 2, 3, *FILE[310:700], *FILE[900:])
    first, second = (
        replay(answer, build_proposer(DraftSources(FILE, (1, 2, 3)), CPU)) for _ in range(2)
    )
    assert first == second


def test_the_draft_is_longer_where_passes_cost_more_than_tokens() -> None:
    short, long = (
        build_proposer(DraftSources(FILE), cost).propose([], 9999) for cost in (CPU, GPU)
    )
    assert 50 < len(short) < len(long) <= 512


@pytest.mark.parametrize("spec", ["auto", "chain", "suffix", "hf-lookup", "hf-lookup:k=64,n=4"])
def test_specifications_make_a_fresh_proposer_each_time(spec: str) -> None:
    make = parse_proposer(spec)
    assert make(DraftSources(FILE), CPU) is not make(DraftSources(FILE), CPU)


def test_a_chain_is_the_likeliest_of_what_a_tree_would_try() -> None:
    random = Random(0)
    original = tuple(random.randrange(40) for _ in range(900))
    answer = tuple(t if at % 30 else 99 for at, t in enumerate(original) if at % 45)
    chains, trees = (
        replay(answer, parse_proposer(spec)(DraftSources(original), GPU))
        for spec in ("chain", "auto")
    )
    assert all(draft.is_chain for draft in chains)
    assert not all(draft.is_chain for draft in trees)
    assert len(trees) < len(chains)


def test_none_is_plain_decoding() -> None:
    assert isinstance(parse_proposer("none")(DraftSources(FILE), CPU), NoDraft)


@pytest.mark.parametrize(
    "spec", ["", "fast", "hf-lookup:", "hf-lookup:k=0,n=2", "hf-lookup:k=10", "hf-lookup:k=x,n=2"]
)
def test_nonsense_is_an_invalid_request(spec: str) -> None:
    with pytest.raises(InvalidRequest, match="no proposer"):
        parse_proposer(spec)
