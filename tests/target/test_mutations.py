"""The exactness checks catch what goes wrong in speculative decoding.

Each of these is broken on purpose, and the check named beside it has to fail:

1. residual without normalising              the distribution after two rejected siblings
2. residual taken as p                       the distribution of one drawn step
3. acceptance turned round (q/p)             the distribution of one drawn step
4. bonus row off by one                      greedy output, chains
5. tree positions by index                   greedy output, trees
6. mask row off by one                       greedy output, trees
7. mask without the tree (all before)        greedy output, trees
8. gather of K/V skipped                     greedy output, trees
9. processors see another branch's prefix    output under a repetition penalty, trees
10. processors see the prompt alone          output under a repetition penalty, chains
11. noise by row, not by position            sampled output, trees
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch

from apply_server.decode import loop
from apply_server.decode.accept import accept
from apply_server.decode.draft import Draft, NoDraft, Proposer
from apply_server.decode.sampling import GREEDY, Purpose, Sampling, noise_key
from apply_server.decode.target import Verdict
from apply_server.target import choose, transformers_model
from apply_server.target.kv_cache import KVCache
from apply_server.target.transformers_model import StockNetwork, TransformersTarget
from tests.conftest import TINY_VOCABULARY, tiny_model
from tests.decode.proposers import Hostile, Oracle
from tests.decode.running import run

PROMPT = (5, 9, 2, 40, 17)
COUNT = 24
PENALTY = Sampling(repetition_penalty=1.6)
SAMPLED = Sampling(1.0, seed=4)


def same_output(sampling: Sampling, drafting: Callable[[Sequence[int], int], Proposer]) -> None:
    """Drafting changes nothing, on a chain or trees of which some branches are right."""
    target = TransformersTarget(StockNetwork(tiny_model("llama")), context=2048)
    plain = run(target, PROMPT, NoDraft(), COUNT, sampling=sampling).output
    for seed in range(6):
        drafted = run(target, PROMPT, drafting(plain, seed), COUNT, sampling=sampling)
        assert drafted.output == plain


def chain(answer: Sequence[int], seed: int) -> Proposer:
    return Oracle(answer, 1 + seed)


def tree(answer: Sequence[int], seed: int) -> Proposer:
    return Hostile(seed, TINY_VOCABULARY, answer)


def distribution(siblings: int) -> None:
    """Tokens drawn by way of drafts from `q` are distributed as `p`."""
    p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.1, 0.2, 0.7])
    draws = 4000
    counts: Counter[int] = Counter()
    for seed in range(draws):
        drafted, drawn_from, left = [], [], q
        for nth in range(siblings):
            key = noise_key(seed, 1, Purpose.DRAFT, nth)
            token = int(choose.draw(left[None], [key]))
            drafted.append(token)
            drawn_from.append(left)
            left = left.clone()
            left[token] = 0.0
            left = left / left.sum()
        draft = Draft(tuple(drafted), (-1,) * siblings, q=tuple(drawn_from))
        asked = choose.Asked([0], draft, Sampling(1.0, seed=seed))
        logits = p.log().expand(1 + siblings, -1)
        counts[choose.choose(logits, [asked])[0].choices[0]] += 1
    statistic = sum((counts[x] - draws * p[x]) ** 2 / (draws * p[x]) for x in range(3))
    assert statistic < 13.82  # two degrees of freedom, p = 0.001


CHECKS: dict[str, Callable[[], None]] = {
    "greedy chains": lambda: same_output(GREEDY, chain),
    "greedy trees": lambda: same_output(GREEDY, tree),
    "penalised chains": lambda: same_output(PENALTY, chain),
    "penalised trees": lambda: same_output(PENALTY, tree),
    "sampled trees": lambda: same_output(SAMPLED, tree),
    "one drawn": lambda: distribution(1),
    "two drawn": lambda: distribution(2),
}


@pytest.mark.parametrize("check", CHECKS)
def test_nothing_is_found_where_nothing_is_broken(check: str) -> None:
    CHECKS[check]()


def not_normalised(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    return (p - q).clamp(min=0.0)


def by_index(draft: Draft) -> list[int]:
    return list(range(1 + len(draft)))


def bonus_row_off_by_one(draft: Draft, verdict: Verdict) -> tuple[tuple[int, ...], int]:
    path, _ = accept(draft, verdict)
    return path, verdict.choices[path[-1] if path else 0]


def mask_row_off_by_one(draft: Draft, device: str) -> torch.Tensor:
    mask = block_mask(draft, device)
    return torch.cat([mask[:1], mask[:-1]])


def mask_of_a_chain(draft: Draft, device: str) -> torch.Tensor:
    return block_mask(Draft.chain(draft.tokens), device)


def keep_without_a_gather(cache: KVCache, rows: Sequence[int]) -> None:
    cache.length += len(rows)


def another_branchs_prefix(asked: choose.Asked, shape: Sequence[int], device: str) -> torch.Tensor:
    as_chain = Draft.chain(asked.draft.tokens)
    return seen_tokens(replace(asked, draft=as_chain), shape, device)


def the_prompt_alone(asked: choose.Asked, shape: Sequence[int], device: str) -> torch.Tensor:
    return seen_tokens(asked, shape, device)[:1].expand(*shape)


block_mask, seen_tokens = transformers_model.block_mask, choose.seen_tokens

BREAKAGES: tuple[tuple[str, object, str, object, str], ...] = (
    ("residual without normalising", choose, "residual", not_normalised, "two drawn"),
    ("residual taken as p", choose, "residual", lambda p, q: p, "one drawn"),
    ("acceptance turned round", choose, "accepts", lambda p, q, u: u * p < q, "one drawn"),
    ("bonus row off by one", loop, "accept", bonus_row_off_by_one, "greedy chains"),
    ("tree positions by index", transformers_model, "depths", by_index, "greedy trees"),
    ("mask row off by one", transformers_model, "block_mask", mask_row_off_by_one, "greedy trees"),
    ("mask without the tree", transformers_model, "block_mask", mask_of_a_chain, "greedy trees"),
    ("gather skipped", KVCache, "keep", keep_without_a_gather, "greedy trees"),
    ("another branch's prefix", choose, "seen_tokens", another_branchs_prefix, "penalised trees"),
    ("the prompt alone", choose, "seen_tokens", the_prompt_alone, "penalised chains"),
    ("noise by row", choose, "depths", by_index, "sampled trees"),
)


@pytest.mark.parametrize("broken", BREAKAGES, ids=lambda broken: broken[0])
def test_what_is_broken_is_found(
    monkeypatch: pytest.MonkeyPatch, broken: tuple[str, object, str, object, str]
) -> None:
    _, place, name, mutant, check = broken
    monkeypatch.setattr(place, name, mutant)
    with pytest.raises(AssertionError):
        CHECKS[check]()


def test_every_breakage_is_listed_above() -> None:
    assert __doc__ is not None
    assert [line.split(".")[0] for line in __doc__.splitlines() if line[:1].isdigit()] == [
        str(number) for number in range(1, len(BREAKAGES) + 1)
    ]
