"""Who runs a kernel, and what compiled code is kept for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from apply_server.kernels import team
from apply_server.kernels.linear import float_linear
from apply_server.kernels.memory import floats
from apply_server.kernels.team import (
    Kernel,
    Team,
    compiled,
    openmp_team,
    pooled_team,
    ticket,
    word,
)
from tests.kernels.numbers import noise


def test_threads_of_our_own_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    product, rows = float_linear("bfloat16")(noise(500, 300), None), noise(9, 300, seed=1)
    expected = product(rows)
    ours, runs = pooled_team(), []

    def run(code: int, arguments: int, threads: int) -> None:
        runs.append(threads)
        ours(code, arguments, 3)

    monkeypatch.setattr(team, "_TEAM", run)
    assert torch.equal(product(rows), expected)
    assert len(runs) == 1


@compiled
def _count(arguments: int) -> None:
    units, times = word(arguments, 1), word(arguments, 2)
    unit = ticket(arguments)
    while unit < units:
        floats(times + 4 * unit, 1)[0] += 1
        unit = ticket(arguments)


@pytest.mark.parametrize("make", [team._team, pooled_team])
def test_each_unit_of_work_is_done_once(
    make: Callable[[], Team], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = make()
    monkeypatch.setattr(team, "_TEAM", lambda code, words, _threads: ours(code, words, 4))
    for _ in range(10):
        times = torch.zeros(100_000)
        Kernel(_count)(len(times), times.data_ptr())
        assert torch.equal(times, torch.ones(len(times)))


def test_a_library_without_gnus_entry_point_has_no_team(tmp_path: Path) -> None:
    assert openmp_team([]) is None
    assert openmp_team([tmp_path / "missing.so"]) is None
    other = tmp_path / "other.so"
    other.write_bytes(b"no library")
    assert openmp_team([other]) is None


def test_compiled_code_is_kept_for_its_sources_and_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernel.py").write_text("first")
    first = team.code_folder(tmp_path, {"APPLY_SERVER_CACHE": "/kept"})
    assert first.parent == Path("/kept/kernels")
    assert team.code_folder(tmp_path, {"APPLY_SERVER_CACHE": "/kept"}) == first
    (tmp_path / "kernel.py").write_text("second")
    second = team.code_folder(tmp_path, {"APPLY_SERVER_CACHE": "/kept"})
    monkeypatch.setattr(team, "version", lambda name: "another")
    third = team.code_folder(tmp_path, {"APPLY_SERVER_CACHE": "/kept"})
    assert len({first, second, third}) == 3
