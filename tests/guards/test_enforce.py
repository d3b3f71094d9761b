"""What a finding does: report, refuse with the diff, or be overridden by its name."""

from __future__ import annotations

import pytest
from hypothesis import given as forall
from hypothesis import settings
from hypothesis import strategies as st

from apply_server.errors import GuardBlocked, InvalidRequest, Remedy
from apply_server.guards import GUARD_NAMES, Finding, check, enforce
from tests.guards.support import found, given

WARNING = Finding("outside-hunks", "warn", "Line 3 changed.", (3,), "original")
BLOCK = Finding("syntax", "block", "It no longer parses.", (2,))
OTHER = Finding("truncated", "block", "The end is missing.", (9, 10), "original")


def test_the_names_are_stable() -> None:
    assert GUARD_NAMES == (
        "truncated",
        "leaked-marker",
        "leaked-fence",
        "leaked-thinking",
        "leaked-prose",
        "duplicated-tail",
        "mostly-gone",
        "outside-hunks",
        "syntax",
    )


def test_warnings_are_returned() -> None:
    assert enforce((), frozenset(), "") == ()
    assert enforce((WARNING,), frozenset(), "the diff") == (WARNING,)


def test_a_block_refuses_and_shows_the_diff() -> None:
    with pytest.raises(GuardBlocked) as caught:
        enforce((WARNING, OTHER, BLOCK, BLOCK), frozenset(), "the diff")
    assert caught.value.message == "The end is missing. Nothing was changed."
    overriding = Remedy("allowed_guards", ("truncated", "syntax"), "takes the result as it is.")
    assert caught.value.remedy == overriding
    assert caught.value.details["guards"] == ["truncated", "syntax"]
    assert caught.value.details["diff"] == "the diff"
    assert caught.value.details["findings"] == [
        OTHER.to_json(),
        BLOCK.to_json(),
        BLOCK.to_json(),
    ]
    assert BLOCK.to_json() == {
        "guard": "syntax",
        "level": "block",
        "message": "It no longer parses.",
        "lines": [2],
        "side": "result",
    }


def test_each_blocking_guard_must_be_overridden_by_name() -> None:
    with pytest.raises(GuardBlocked) as caught:
        enforce((OTHER, BLOCK), frozenset({"truncated"}), "")
    assert caught.value.details["guards"] == ["syntax"]
    assert enforce((OTHER, BLOCK), frozenset({"truncated", "syntax"}), "") == (OTHER, BLOCK)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"no guard named 'sintax'\. Choose from truncated, "):
        enforce((), frozenset({"sintax", "syntax"}), "")


def test_nothing_changed_is_never_a_finding() -> None:
    text = "<think>\n# ... existing code ...\n```\n(\n```\na\na\n"
    assert found(text, text, "x", "y", language="python", hunks=((0, 0),)) == []


@settings(deadline=None, max_examples=150)
@forall(
    st.lists(st.sampled_from(["a = 1", "  b(a)", "}", "", "# ... existing code ...", "```"])),
    st.lists(st.sampled_from(["a = 1", "  b(a)", "}", "", "# ... existing code ...", "```"])),
    st.sampled_from(["", "Remove everything.", "Change a.", "Delete b."]),
    st.sampled_from([None, ((0, 1),), ((1, 1), (2, 4))]),
)
def test_findings_point_into_the_texts(
    before: list[str], after: list[str], instruction: str, hunks: tuple[tuple[int, int], ...] | None
) -> None:
    texts = "\n".join(before), "\n".join(after)
    case = given(*texts, instruction, "a = 1", language="python", hunks=hunks)
    for finding in check(case):
        lines = case.original if finding.side == "original" else case.final
        assert finding.guard in GUARD_NAMES
        assert all(0 <= number <= len(lines) + 1 for number in finding.lines)
