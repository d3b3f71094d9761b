"""The cost table is measured once for a model and machine, and survives a bad cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from apply_server.decode.speedup import CostTable
from apply_server.engine import cost
from apply_server.engine.cost import cost_table, measure, measurements_of
from apply_server.target.transformers_model import TransformersTarget


def table_of(target: TransformersTarget, model: Path, cache: Path) -> CostTable:
    return cost_table(target, measurements_of(target, model, cache, 2))


def passes_of(target: TransformersTarget, model: Path, cache: Path) -> int:
    before = target.passes
    table_of(target, model, cache)
    return target.passes - before


def test_the_second_load_measures_nothing(tiny_target: TransformersTarget, tmp_path: Path) -> None:
    assert passes_of(tiny_target, tmp_path, tmp_path / "costs") > 0
    assert passes_of(tiny_target, tmp_path, tmp_path / "costs") == 0


def test_another_model_has_a_table_of_its_own(
    tiny_target: TransformersTarget, tmp_path: Path
) -> None:
    assert passes_of(tiny_target, tmp_path / "a", tmp_path) > 0
    assert passes_of(tiny_target, tmp_path / "b", tmp_path) > 0


@pytest.mark.parametrize("module", [cost, torch], ids=["apply_server", "torch"])
def test_another_version_is_measured_again(
    monkeypatch: pytest.MonkeyPatch, tiny_target: TransformersTarget, tmp_path: Path, module: Any
) -> None:
    assert passes_of(tiny_target, tmp_path, tmp_path) > 0
    monkeypatch.setattr(module, "__version__", "0.0.0")
    assert passes_of(tiny_target, tmp_path, tmp_path) > 0


@pytest.mark.parametrize("content", ["", "{}", '{"points": [[2, 1.0]]}', "\x00\xff"])
def test_a_damaged_cache_file_is_measured_again(
    tiny_target: TransformersTarget, tmp_path: Path, content: str
) -> None:
    first = table_of(tiny_target, tmp_path, tmp_path)
    (file,) = tmp_path.glob("*.json")
    file.write_text(content, "latin-1")
    again = table_of(tiny_target, tmp_path, tmp_path)
    assert again.points[0] == (1, 1.0)
    assert [k for k, _ in again.points] == [k for k, _ in first.points]


def test_a_cache_that_cannot_be_written_does_not_stop_anybody(
    tiny_target: TransformersTarget, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert table_of(tiny_target, tmp_path, tmp_path / "file" / "costs").cost(1) == 1.0


def test_measuring_leaves_the_slot_closed_and_counts_each_block(
    tiny_target: TransformersTarget,
) -> None:
    assert sorted(measure(tiny_target)) == [1, 2, 8, 32, 128]


def test_each_thing_measured_is_kept_by_its_name(
    tiny_target: TransformersTarget, tmp_path: Path
) -> None:
    measured = measurements_of(tiny_target, tmp_path, tmp_path, 2)
    assert measured.once("spread", float, lambda: 0.25) == 0.25
    assert measured.once("other", float, lambda: 0.5) == 0.5
    assert measured.once("spread", float, lambda: pytest.fail("it is known")) == 0.25
