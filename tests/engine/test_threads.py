"""As few threads as cost next to nothing, found out once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

from apply_server.config import EngineConfig
from apply_server.engine import build, threads
from apply_server.engine.threads import candidates, fewest, settle_threads
from apply_server.errors import InvalidRequest
from apply_server.models import Report
from apply_server.target.transformers_model import TransformersTarget


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads cost nothing to name; what passes take is said by each test."""
    monkeypatch.setattr(threads, "_processors", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def passes_take(monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float]) -> list[int]:
    """By the number of threads; returns the numbers that were tried, as they are."""
    tried: list[int] = []

    def measure(target: TransformersTarget, blocks: Sequence[int], rounds: int) -> dict[int, float]:
        tried.append(torch.get_num_threads())
        return dict.fromkeys(blocks, seconds[tried[-1]])

    monkeypatch.setattr(threads, "measure", measure)
    return tried


@pytest.mark.parametrize(
    ("seconds", "best"),
    [
        ({8: 1.0, 7: 1.1, 4: 2.0}, 7),
        ({8: 1.0, 7: 1.2, 4: 2.0}, 8),
        ({8: 3.0, 7: 2.5, 4: 1.0}, 4),  # half of the cores are slow ones
        ({8: 1.0, 7: 1.0, 4: 1.1}, 4),  # the memory is what is slow
        ({1: 1.0}, 1),
    ],
)
def test_the_fewest_that_are_about_as_fast(seconds: dict[int, float], best: int) -> None:
    assert fewest(seconds) == best


@pytest.mark.parametrize(
    ("processors", "tried"),
    [(1, [1]), (2, [2, 1]), (3, [3, 2, 1]), (8, [8, 7, 4, 3, 2]), (24, [24, 23, 12, 11, 8])],
)
def test_cores_may_be_shared_or_slow_or_wanted_elsewhere(processors: int, tried: list[int]) -> None:
    assert candidates(processors) == tried


def test_it_is_found_out_once_by_turns(
    monkeypatch: pytest.MonkeyPatch, tiny_target: TransformersTarget, tmp_path: Path
) -> None:
    tried = passes_take(monkeypatch, {8: 1.0, 7: 1.1, 4: 9.0, 3: 9.0, 2: 9.0})
    settle_threads(0, tiny_target, tmp_path, tmp_path / "costs")
    assert torch.get_num_threads() == 7
    assert tried == [8, 7, 4, 3, 2] * 2
    torch.set_num_threads(1)
    settle_threads(0, tiny_target, tmp_path, tmp_path / "costs")
    assert torch.get_num_threads() == 7
    assert len(tried) == 10


def test_what_is_wanted_is_not_measured(
    monkeypatch: pytest.MonkeyPatch, tiny_target: TransformersTarget, tmp_path: Path
) -> None:
    tried = passes_take(monkeypatch, {})
    settle_threads(3, tiny_target, tmp_path, tmp_path / "costs")
    assert torch.get_num_threads() == 3
    assert tried == []


def test_what_the_environment_says_stands(
    monkeypatch: pytest.MonkeyPatch, tiny_target: TransformersTarget, tmp_path: Path
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    torch.set_num_threads(5)
    assert settle_threads(0, tiny_target, tmp_path, tmp_path / "costs") == 5
    assert settle_threads(3, tiny_target, tmp_path, tmp_path / "costs") == 3


@pytest.mark.parametrize("kept", ["0", "-2", '"many"', "null"])
def test_a_number_that_cannot_be_is_measured_again(
    monkeypatch: pytest.MonkeyPatch, tiny_target: TransformersTarget, tmp_path: Path, kept: str
) -> None:
    passes_take(monkeypatch, {8: 1.0, 7: 2.0, 4: 9.0, 3: 9.0, 2: 9.0})
    settle_threads(0, tiny_target, tmp_path, tmp_path)
    (file,) = tmp_path.glob("*.threads.json")
    file.write_text(f'{{"threads": {kept}}}')
    settle_threads(0, tiny_target, tmp_path, tmp_path)
    assert torch.get_num_threads() == 8


def test_passes_are_really_timed(tiny_target: TransformersTarget, tmp_path: Path) -> None:
    before = tiny_target.passes
    settle_threads(0, tiny_target, tmp_path, tmp_path)
    assert torch.get_num_threads() in candidates(8)
    # a warm-up and two block sizes, for each of five numbers, twice
    assert tiny_target.passes - before == 3 * 5 * 2


@pytest.mark.parametrize("wanted", [-1, 10**6])
def test_more_threads_than_the_machine_has_are_refused(wanted: int) -> None:
    with pytest.raises(InvalidRequest, match=f"{wanted} threads.*processors for 8"):
        build.load_model(EngineConfig("m", threads=wanted), Report())
