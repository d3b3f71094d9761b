"""Lessons: which texts are read, in which pieces, and what is missing from them."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_server.errors import InvalidRequest
from apply_server.heads.lessons import LONGEST_LINE, WINDOW, lessons, library, with_holes

LINES = [f"line {number}\n" for number in range(2 * WINDOW + 3)]


def test_a_file_is_cut_into_windows_and_each_lesson_asks_for_its_missing_lines(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_text("".join(LINES), "utf-8")
    found = lessons([tmp_path])
    windows = ["".join(LINES[:WINDOW]).encode(), "".join(LINES[WINDOW : 2 * WINDOW]).encode()]
    assert sorted(lesson.expected for lesson in found) == sorted(windows)  # the rest is too short
    for lesson in found:
        assert (lesson.language, lesson.file_name, lesson.snippet) == ("python", "a.py", None)
        kept = lesson.original.splitlines()
        whole = lesson.expected.splitlines()
        assert len(kept) < len(whole)
        assert kept == [line for line in whole if line in kept]


@given(st.integers(0, 200), st.integers())
def test_lines_that_are_left_stay_in_order(count: int, seed: int) -> None:
    lines = [f"{number}\n" for number in range(count)]
    kept = with_holes(lines, Random(seed))
    assert kept == sorted(kept, key=int)
    assert kept[:1] == lines[:1]


def test_the_order_is_random_and_the_same_every_time(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.rs").write_text("".join(LINES[:10]), "utf-8")
    first = [lesson.id for lesson in lessons([tmp_path])]
    assert first == [lesson.id for lesson in lessons([tmp_path])]
    assert first != sorted(first)
    assert len(set(first)) == 9


def test_what_nobody_wrote_by_hand_is_left_out(tmp_path: Path) -> None:
    source = "".join(LINES[:20])
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "a.js").write_text(source, "utf-8")
    (tmp_path / "unknown").write_text(source, "utf-8")
    (tmp_path / "packed.js").write_text(source + "x" * LONGEST_LINE + "\n", "utf-8")
    with pytest.raises(InvalidRequest, match="No source text"):
        lessons([tmp_path])


def test_of_cases_the_results_are_read(tmp_path: Path) -> None:
    result = "".join(LINES[:30])
    case = {
        "id": "a", "language": "go", "instruction": "add", "snippet": None,
        "original": "short\n", "expected": result,
    }  # fmt: skip
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(case) + "\n", "utf-8")
    (lesson,) = lessons([path])
    assert lesson.expected == result.encode()
    assert lesson.language == "go"


def test_pythons_own_library_is_there_to_read() -> None:
    assert (library() / "argparse.py").is_file()
    assert len(list(islice(lessons([library() / "argparse.py"]), 3))) == 3
