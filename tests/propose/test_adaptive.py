"""The limit grows while drafts hit and shrinks after rejections."""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.decode.draft import Draft, Step
from apply_server.propose.adaptive import AdaptiveLimit


class Recording:
    """Drafts zeros up to the limit."""

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        return Draft.chain([0] * limit)

    def observe(self, step: Step) -> None:
        pass


def drafted(accepted: Sequence[int], longest: int = 64) -> list[int]:
    """Draft lengths where that many tokens (at most) are accepted, step by step."""
    proposer = AdaptiveLimit(Recording(), shortest=2, longest=longest)
    lengths = []
    for count in accepted:
        draft = proposer.propose([], 1000)
        lengths.append(len(draft))
        path = tuple(range(min(count, len(draft))))
        proposer.observe(Step(draft, path, (0,) * (len(path) + 1)))
    return lengths


def test_shrinks_after_rejections_and_grows_back() -> None:
    assert drafted([0, 0, 99, 99, 99, 99, 99, 99]) == [64, 2, 2, 4, 8, 16, 32, 64]


def test_a_partial_hit_keeps_twice_what_was_accepted() -> None:
    assert drafted([10, 99]) == [64, 20]


def test_the_callers_limit_holds() -> None:
    assert len(AdaptiveLimit(Recording(), shortest=2, longest=64).propose([], 3)) == 3
