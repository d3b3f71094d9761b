"""The fixtures are what they claim to be; the loader says what is wrong with other cases."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from apply_server.errors import InvalidRequest
from apply_server.replay.cases import Case, load_cases

FIXTURES = Path(__file__).parents[2] / "fixtures"
MARKER = re.compile(
    r"^\s*(#|//|--|/\*|<!--) \.\.\. existing (code|content) \.\.\.( \*/| -->)?$", re.M
)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return load_cases([FIXTURES])


def line_count(case: Case) -> int:
    return case.expected.count(b"\n")


def tagged(cases: list[Case], tag: str) -> list[Case]:
    found = [case for case in cases if tag in case.tags]
    assert found, f"no case is tagged {tag}"
    return found


def test_every_folder_is_a_case(cases: list[Case]) -> None:
    folders = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())
    assert [case.id for case in cases] == folders
    assert len(cases) >= 46
    assert all(case.id.split("-")[0] == case.language for case in cases)


def test_folders_hold_nothing_but_the_case() -> None:
    for folder in FIXTURES.iterdir():
        names = sorted(path.stem for path in folder.iterdir())
        assert names in (
            ["case", "expected", "original"],
            ["case", "expected", "original", "snippet"],
        )


def test_languages_are_varied(cases: list[Case]) -> None:
    languages = Counter(case.language for case in cases)
    assert len(languages) >= 20
    assert max(languages.values()) <= len(cases) // 4


def test_half_are_instructions_and_half_are_lazy_snippets(cases: list[Case]) -> None:
    with_snippet = [case for case in cases if case.snippet is not None]
    assert len(with_snippet) * 2 == len(cases)
    for case in with_snippet:
        assert MARKER.search(case.snippet or ""), case.id


def test_every_edit_changes_something_and_keeps_most(cases: list[Case]) -> None:
    for case in cases:
        original = case.original.split(b"\n")
        expected = case.expected.split(b"\n")
        kept = sum((Counter(original) & Counter(expected)).values())
        assert case.original != case.expected, case.id
        assert kept >= 0.6 * len(original), case.id


def test_markers_stand_in_snippets_only(cases: list[Case]) -> None:
    for case in cases:
        assert b"... existing" not in case.original + case.expected, case.id


def test_snippets_are_runs_of_lines_of_the_result(cases: list[Case]) -> None:
    """What stands between two markers stands in the expected file, in order and in one piece."""
    for case in cases:
        rest = case.expected.decode().replace("\r\n", "\n")
        for run in MARKER.sub("\0", case.snippet or "").split("\0"):
            found = rest.find(run.strip("\n").rstrip())
            assert found >= 0, (case.id, run)
            rest = rest[found + len(run.strip("\n").rstrip()) :]


def test_sizes(cases: list[Case]) -> None:
    assert all(10 <= line_count(case) <= 400 for case in cases)
    assert sum(line_count(case) > 90 for case in cases) >= 8
    assert sum(line_count(case) > 290 for case in cases) >= 2
    # About four bytes make a token: these answers are well over 600 tokens.
    long_snippets = [case for case in cases if case.snippet and len(case.expected) >= 2900]
    assert len(long_snippets) >= 7
    fast = {"python", "typescript", "go", "rust"}
    assert len({case.language for case in long_snippets} & fast) == 4


def test_texts_are_utf8_and_fixed_points_of_their_line_ends(cases: list[Case]) -> None:
    for case in cases:
        original, expected = case.original.decode(), case.expected.decode()
        assert original.endswith("\n") == expected.endswith("\n"), case.id
        assert original.startswith("\ufeff") == expected.startswith("\ufeff"), case.id
        assert ("\r" in original) == ("\r" in expected), case.id


def test_crlf_files_have_no_other_line_end(cases: list[Case]) -> None:
    crlf = tagged(cases, "crlf")
    assert any(case.snippet for case in crlf)
    for case in crlf:
        for data in (case.original, case.expected):
            assert data.count(b"\r\n") == data.count(b"\n") > 10


def test_only_tagged_files_lack_the_final_newline(cases: list[Case]) -> None:
    missing = {case.id for case in cases if not case.original.endswith(b"\n")}
    assert missing == {case.id for case in tagged(cases, "no-final-newline")}


@pytest.mark.parametrize(
    ("tag", "pattern"),
    [
        ("bom", "\\A\ufeff"),
        ("tabs", r"^\t"),
        ("form-feed", r"^\f$"),
        ("trailing-whitespace", r"\S[ \t]+$"),
        ("emoji", "[\U0001f300-\U0001faff]"),
        ("cjk", "[\u3040-\u30ff\u4e00-\u9fff]"),
        ("special-tokens", r"<\|im_end\|>"),
        ("code-fences", r"^````"),
    ],
)
def test_tagged_features_are_there_before_and_after(
    cases: list[Case], tag: str, pattern: str
) -> None:
    for case in tagged(cases, tag):
        assert re.search(pattern, case.original.decode(), re.M), case.id
        assert re.search(pattern, case.expected.decode(), re.M), case.id


def test_duplicates_hold_blocks_that_come_twice(cases: list[Case]) -> None:
    for case in tagged(cases, "duplicates"):
        lines = case.original.decode().split("\n")
        triples = Counter(zip(lines, lines[1:], lines[2:], strict=False))
        assert max(triples.values()) >= 2, case.id


def test_one_folder_and_a_pattern(cases: list[Case]) -> None:
    (case,) = load_cases([FIXTURES / "python-checkout-rename"])
    assert case in cases
    assert case.file_name == "original.py"
    assert case.snippet is None
    assert case.instruction is not None
    assert load_cases([FIXTURES], only="checkout") == [case]
    assert load_cases([FIXTURES], only="python-*rename") == [case]
    assert {case.language for case in load_cases([FIXTURES], only="go-")} == {"go"}


LINE = {"id": "a", "language": "python", "original": "x = 1\r\n", "expected": "x = 2\r\n"}


def write_lines(folder: Path, *records: object) -> Path:
    path = folder / "cases.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records), encoding="utf-8")
    return path


def test_lines_of_json(tmp_path: Path) -> None:
    first = LINE | {"instruction": "Set x to 2.", "snippet": "", "notes": 7}
    second = LINE | {"id": "b", "language": "lua", "instruction": None, "snippet": "x = 2\n"}
    assert load_cases([write_lines(tmp_path, first, second)]) == [
        Case("a", "python", "original.py", b"x = 1\r\n", "Set x to 2.", None, b"x = 2\r\n"),
        Case("b", "lua", "original.lua", b"x = 1\r\n", None, "x = 2\n", b"x = 2\r\n"),
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"snippet": "  "}, "the field `instruction` is needed where there is no snippet."),
        ({"snippet": 3}, "the field `snippet` must be text."),
        ({"snippet": "x", "original": None}, "the field `original` must be text."),
        ({"snippet": "x", "expected": "\ud800"}, "the field `expected` holds half of a"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    good = LINE | {"id": "good", "snippet": "x"}
    path = write_lines(tmp_path, good, LINE | change)
    with pytest.raises(InvalidRequest) as caught:
        load_cases([path])
    assert caught.value.message.startswith(f"{path}:2: {problem}")


def test_a_missing_field_of_a_line(tmp_path: Path) -> None:
    record = {key: value for key, value in LINE.items() if key != "expected"}
    path = write_lines(tmp_path, record | {"snippet": "x"})
    with pytest.raises(InvalidRequest) as caught:
        load_cases([path])
    assert caught.value.message == f"{path}:1: the field `expected` is missing."


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\n{", ":2: this is not valid JSON:"),
        (b"[]", ":1: a case must be a JSON object."),
        (b"\n\n\xff", ":3: this is not UTF-8."),
    ],
)
def test_broken_lines(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvalidRequest) as caught:
        load_cases([path])
    assert caught.value.message.startswith(f"{path}{problem}")


TOML = """id = "demo"
language = "python"
instruction = "Set x to 2."
original = "original.py"
expected = "expected.py"
"""


def write_folder(parent: Path, toml: str) -> Path:
    folder = parent / "demo"
    folder.mkdir()
    (folder / "case.toml").write_text(toml, encoding="utf-8")
    (folder / "original.py").write_bytes(b"x = 1\n")
    (folder / "expected.py").write_bytes(b"x = 2\n")
    (folder / "snippet.py").write_bytes(b"\xff")
    return folder


def test_a_folder_case(tmp_path: Path) -> None:
    write_folder(tmp_path, TOML)
    assert load_cases([tmp_path]) == [
        Case("demo", "python", "original.py", b"x = 1\n", "Set x to 2.", None, b"x = 2\n")
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"demo"', '"other"', ":1: the field `id` must be the name of its folder, 'demo'."),
        ('"python"', "4", ":2: the field `language` must be text."),
        ('"Set x to 2."', '""', ":3: the field `instruction` is needed where there is no snippet."),
        ('"original.py"', '"gone.py"', ":4: the field `original` names 'gone.py': No such file"),
        ('"original.py"', '"../a.py"', ":4: the field `original` must be the name of a file"),
        ('"expected.py"', '"."', ":5: the field `expected` "),
        ('expected = "expected.py"', "", ":1: the field `expected` is missing."),
        ('"expected.py"\n', '"expected.py"\ntags = "a"', ":6: the field `tags` must be a list"),
        ('"Set x to 2."', '"x"\nsnippet = "snippet.py"', ":4: the field `snippet` names a file"),
        ('"demo"', "demo", " is not valid TOML: Invalid value (at line 1, column 6)."),
    ],
)
def test_bad_folders_are_named(tmp_path: Path, old: str, new: str, problem: str) -> None:
    folder = write_folder(tmp_path, TOML.replace(old, new))
    with pytest.raises(InvalidRequest) as caught:
        load_cases([folder])
    assert caught.value.message.startswith(f"{folder / 'case.toml'}{problem}")


def test_paths_without_cases(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"^No case in .* matches 'nothing-like-it'\.$"):
        load_cases([FIXTURES], only="nothing-like-it")
    with pytest.raises(InvalidRequest, match=rf"^No case in {re.escape(str(tmp_path))}\.$"):
        load_cases([tmp_path])
    with pytest.raises(InvalidRequest, match=r"gone is neither a folder of cases nor"):
        load_cases([tmp_path / "gone"])
    with pytest.raises(InvalidRequest, match=r"gone\.jsonl can't be read: No such file"):
        load_cases([tmp_path / "gone.jsonl"])


def test_an_id_that_comes_twice(tmp_path: Path) -> None:
    path = write_lines(tmp_path, LINE | {"snippet": "x"})
    with pytest.raises(InvalidRequest, match=r"^The case id 'a' comes twice"):
        load_cases([path, path])
