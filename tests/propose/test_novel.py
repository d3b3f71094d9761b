"""Copies where they are sure, others where not, as one tree; each hears of its own part."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_server.decode.draft import NO_DRAFT, Draft, Step
from apply_server.propose.novel import NovelText, graft
from tests.decode.proposers import Hostile


class Fixed:
    """Always the same draft; remembers what it was asked and told."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.limits: list[int] = []
        self.steps: list[Step] = []

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        self.limits.append(limit)
        return self.draft.head(limit)

    def observe(self, step: Step) -> None:
        self.steps.append(step)


def paths(draft: Draft) -> set[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for token, parent in zip(draft.tokens, draft.parents, strict=True):
        found.append((*(found[parent] if parent >= 0 else ()), token))
    assert len(set(found)) == len(found), "children of one node differ"
    return set(found)


def test_a_sure_copy_is_drafted_alone() -> None:
    copying = Fixed(Draft.chain([1, 2], score=0.9))
    other = Fixed(Draft.chain([3]))
    assert NovelText(copying, [other]).propose([], 9) == copying.draft
    assert other.limits == []


def test_an_unsure_copy_is_joined_by_the_others_which_come_first() -> None:
    copying = Fixed(Draft.chain([1, 2], score=0.1, source="copy"))
    other = Fixed(Draft.chain([1, 5], score=1.0, source="model"))
    draft = NovelText(copying, [other]).propose([], 9)
    assert draft == Draft((1, 5, 2), (-1, 0, 0), 1.0, ("model", "model", "copy"))


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
def test_the_limit_holds_for_all_together(limit: int) -> None:
    proposer = NovelText(Fixed(Draft.chain([1, 2])), [Fixed(Draft.chain([7, 8]))])
    assert len(proposer.propose([], limit)) == min(limit, 4)


def test_each_proposer_hears_of_its_own_draft_and_what_became_of_it() -> None:
    copying = Fixed(Draft((4, 1, 2), (-1, -1, 1), 0.1))
    other = Fixed(Draft.chain([1, 5]))
    proposer = NovelText(copying, [other])
    joined = proposer.propose([], 9)
    proposer.observe(Step(joined, (0,), (1, 9), ((0.5,), (0.25,))))
    assert copying.steps == [Step(copying.draft, (1,), (1, 9))]
    assert other.steps == [Step(other.draft, (0,), (1, 9))]
    assert other.steps[0].features == ((0.5,), (0.25,))


def test_who_was_not_asked_hears_of_an_empty_draft() -> None:
    other = Fixed(Draft.chain([3]))
    proposer = NovelText(Fixed(Draft.chain([1], score=0.9)), [other])
    proposer.observe(Step(proposer.propose([], 9), (0,), (1, 2)))
    assert other.steps == [Step(NO_DRAFT, (), (1, 2))]


def test_a_drawn_node_stays_drawn_where_a_copy_says_the_same() -> None:
    drawn = Draft.chain([1], q=[(0.5, 0.5)])
    assert graft([drawn, Draft.chain([1, 0])]).q == ((0.5, 0.5), None)


@given(seeds=st.lists(st.integers(0, 1000), max_size=4))
def test_a_graft_has_all_paths_once(seeds: list[int]) -> None:
    drafts = [Hostile(seed, 3).propose([], 9) for seed in seeds]
    joined = graft(drafts)
    assert paths(joined) == {path for draft in drafts for path in paths(draft)}
    assert all(-1 <= parent < node for node, parent in enumerate(joined.parents))
