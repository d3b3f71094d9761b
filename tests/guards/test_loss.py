"""Results without their end, with little of the file left, or with the end twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given as forall
from hypothesis import settings
from hypothesis import strategies as st

from apply_server.guards import check
from apply_server.guards.loss import _repeated_end
from tests.guards.support import PYTHON, found, given

LINES = PYTHON.splitlines(keepends=True)
ASK = "Set LIMIT to 20."
LAZY = "# ... existing code ...\nLIMIT = 20\n# ... existing code ...\n"
CHANGED = PYTHON.replace("LIMIT = 10", "LIMIT = 20")


def guards(original: str, final: str, instruction: str = "", **rest: object) -> list[str]:
    return [f"{name} {level}" for name, level, _ in found(original, final, instruction, **rest)]  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 3, 8])
def test_a_missing_end_blocks(count: int) -> None:
    kept = len(LINES) - count
    lost = tuple(row + 1 for row in range(kept, len(LINES)) if LINES[row].strip())
    final = "".join(LINES[:kept]).replace("LIMIT = 10", "LIMIT = 20")
    assert found(PYTHON, final, ASK)[0] == ("truncated", "block", lost)
    assert found(PYTHON, final, "", LAZY, hunks=((3, 4),))[0] == ("truncated", "block", lost)


def test_an_end_inside_a_line_blocks() -> None:
    final = "".join(LINES[:-5]) + "    report(lo"
    assert "truncated block" in guards(PYTHON, final, ASK)


def test_another_end_is_a_warning() -> None:
    final = "".join(LINES[:-8]) + "raise SystemExit(0)\n"
    assert guards(PYTHON, final, "Exit with 0.") == ["truncated warn"]


def test_an_end_that_the_edit_takes_away_passes() -> None:
    final = "".join(LINES[:-3])
    assert guards(PYTHON, final, "Delete the check of __name__.") == []
    snippet = "# ... existing code ...\ndef main():\n    report(load(sys.argv[1]))\n"
    assert guards(PYTHON, final, snippet=snippet, hunks=((25, 29),)) == []


def test_an_instruction_that_names_the_end_without_taking_it_away_blocks() -> None:
    final = "".join(LINES[:-3])
    assert guards(PYTHON, final, "In __name__ == __main__, print a dot.") == ["truncated block"]


def test_an_end_as_the_snippet_has_it_warns_where_no_merge_tells() -> None:
    snippet = "# ... existing code ...\n    report(load(sys.argv[1]))\n"
    assert guards(PYTHON, "".join(LINES[:-3]), snippet=snippet) == ["truncated warn"]


def test_a_result_without_most_of_the_file_blocks() -> None:
    final = "".join(LINES[:4]) + "".join(LINES[-3:])
    assert guards(PYTHON, final, ASK)[0] == "mostly-gone block"
    assert "mostly-gone block" in guards(PYTHON, "", ASK)


@pytest.mark.parametrize(("share", "blocked"), [(0.3, True), (0.6, False)])
def test_how_much_may_go_can_be_set(share: float, blocked: bool) -> None:
    lines = [f"value_{number} = {number}\n" for number in range(20)]
    asked = given("".join(lines), "".join(lines[:8] + lines[16:]), "make it pretty")
    found = {finding.guard for finding in check(replace(asked, max_removal=share))}
    assert ("mostly-gone" in found) == blocked


def test_the_echo_of_a_snippet_blocks() -> None:
    snippet = "LIMIT = 20\n"
    assert "mostly-gone block" in guards(PYTHON, snippet, snippet=snippet)
    assert "mostly-gone block" in guards(PYTHON, snippet, snippet=LAZY, hunks=((3, 4),))


def test_long_lines_that_stay_keep_most_of_the_file() -> None:
    lines = [f"{number}\n" for number in range(20)]
    original = "".join(lines) + "value = " + "9" * 200 + "\n"
    final = original.partition("4\n")[0] + "value = " + "9" * 200 + "\n"
    assert guards(original, final, ASK) == []


@pytest.mark.parametrize(
    "instruction",
    [
        "Delete the whole content of this file.",
        "Remove everything.",
        "Clear the file.",
        "Rewrite it from scratch, in one line.",
    ],
)
def test_emptying_on_request_passes(instruction: str) -> None:
    assert guards(PYTHON, "", instruction) == []


@pytest.mark.parametrize(
    "instruction", ["Rename total everywhere.", "Remove total.", "Move the file's imports down."]
)
def test_emptying_otherwise_blocks(instruction: str) -> None:
    assert "mostly-gone block" in guards(PYTHON, "", instruction)


def test_a_large_part_that_the_edit_names_may_go() -> None:
    body = "".join(f"    step({number})\n" for number in range(40))
    original = f"start = 1\n\n\ndef legacy():\n{body}\n\ndef stay():\n    return start\n"
    final = "start = 1\n\n\ndef stay():\n    return start\n"
    assert guards(original, final, "Delete the function legacy.") == []
    assert guards(original, final, "Rename start.")[0] == "mostly-gone block"
    snippet = "start = 1\n\n\ndef stay():\n    return start\n"
    assert guards(original, final, snippet=snippet, hunks=((3, 46),)) == []


@pytest.mark.parametrize("count", [2, 6, len(LINES)])
def test_an_end_written_twice_blocks(count: int) -> None:
    final = CHANGED + "".join(CHANGED.splitlines(keepends=True)[-count:])
    rows = [row for row in range(len(LINES), len(LINES) + count) if final.splitlines()[row].strip()]
    second = ("duplicated-tail", "block", tuple(row + 1 for row in rows))
    assert second in found(PYTHON, final, ASK)


def test_one_line_written_twice_warns() -> None:
    assert guards("a = 1\nprint(a)\n", "a = 2\nprint(a)\nprint(a)\n", "Set a to 2.") == [
        "duplicated-tail warn"
    ]


def test_an_end_that_was_there_twice_or_is_asked_for_twice_passes() -> None:
    twice = "a = 1\nping(a)\nwait(a)\nping(a)\nwait(a)\n"
    assert guards(twice, twice.replace("a = 1", "a = 2"), "Set a to 2.") == []
    once = "a = 1\nping(a)\nwait(a)\n"
    assert guards(once, twice, snippet=twice, hunks=((3, 3),)) == []


def test_closing_brackets_alone_are_no_end() -> None:
    original = "f(a, {\n  b: {\n  }\n}\n"
    assert guards(original, original + "}\n", "Close it.") == []


@settings(deadline=None)
@forall(st.lists(st.sampled_from("abc"), max_size=24))
def test_the_repeated_end_is_the_longest_one(lines: list[str]) -> None:
    size = len(lines)
    lengths = [n for n in range(1, size // 2 + 1) if lines[-n:] == lines[-2 * n : size - n]]
    assert _repeated_end(lines) == max(lengths, default=0)
