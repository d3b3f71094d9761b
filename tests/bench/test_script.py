"""A model whose choices are scripted: the answers are the script's, the passes its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from apply_server import models
from apply_server.bench.build import Bench, Selection, prepare
from apply_server.bench.modes import choose
from apply_server.bench.runs import interleave
from apply_server.cli import main
from apply_server.config import EngineConfig
from apply_server.decode.sampling import Sampling
from apply_server.errors import InvalidRequest
from apply_server.replay.cases import Case
from apply_server.target.transformers_model import StockNetwork, TransformersTarget
from tests.bench.test_build import cache, case, command, write_cases  # noqa: F401
from tests.engine.support import save_model
from tests.target.test_lean import INT8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model"), context=2048)


def scripted(
    folder: Path, *cases: Case, dtype: str = "float32", sampling: Sampling | None = None,
    modes: tuple[str, ...] = ("plain", "ours"),
) -> Bench:  # fmt: skip
    config = EngineConfig(str(folder), "cpu", dtype, cost="rho=15", sampling=sampling or Sampling())
    chosen = choose(modes, [10], [2]).modes
    return prepare(config, chosen, Selection(cases), models.Report(), scripted=True)


def adversary() -> Case:
    """A file that nothing of the answer is in."""
    original = "".join(f"{i}{i}\n" for i in range(9)).encode()
    return Case("a", "python", "f.py", original, "write it anew", None, b"pass\n" * 3 + b"quit\n")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", INT8])
def test_every_mode_writes_the_expected_answer_whatever_the_weights_say(
    folder: Path, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    verify = TransformersTarget.verify

    def counted(target: TransformersTarget, batch: object) -> object:
        before = target.passes
        verdicts = verify(target, batch)  # type: ignore[arg-type]
        made.append(target.passes - before)
        return verdicts

    monkeypatch.setattr(TransformersTarget, "verify", counted)
    bench = scripted(folder, case("lazy", 20), adversary(), dtype=dtype)
    made.clear()
    for trial in interleave(bench.jobs, bench.runners):
        run = trial.measure().run
        assert run.output == trial.job.expected
        assert run.stopped
        if trial.mode.name == "plain":
            assert len(run.passes) == len(run.output)
        elif trial.job.id == "lazy":
            assert len(run.passes) * 10 < len(run.output)
        # However close the weights' own choices were, no pass was made twice.
        assert made == [1] * len(run.passes)
        made.clear()


def test_a_script_takes_the_place_of_no_peer_and_of_no_draw(folder: Path) -> None:
    with pytest.raises(InvalidRequest, match="--modes plain,ours"):
        scripted(folder, case("a"), modes=("hf-plain", "ours"))
    with pytest.raises(InvalidRequest, match="greedily"):
        scripted(folder, case("a"), sampling=Sampling(0.7))


def test_the_command_says_that_choices_are_scripted(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(write_cases(tmp_path, case("a")), folder, "--scripted")) == 0
    printed = capsys.readouterr().out
    assert " · choices by script\n" in printed
    assert "drafting" in printed.splitlines()[0]


def test_near_ties_are_the_networks_unless_told_otherwise() -> None:
    network = StockNetwork.__new__(StockNetwork)
    network.tolerance = 0.5
    assert TransformersTarget(network, 8).tolerance == 0.5
    assert TransformersTarget(network, 8, tolerance=0.0).tolerance == 0.0
