"""The whole benchmark over a tiny model: one output for all modes, and what is run of what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apply_server import models
from apply_server.bench.build import Bench, Selection, configured, prepare
from apply_server.bench.modes import NAMES, choose
from apply_server.bench.report import Measurements, report_json
from apply_server.bench.runs import Measured, Trial, interleave
from apply_server.cli import main
from apply_server.config import EngineConfig
from apply_server.decode.sampling import Sampling
from apply_server.errors import INTERRUPTED, REFUSED, InvalidRequest
from apply_server.replay.cases import Case
from tests.engine.support import save_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model"), context=2048)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPLY_SERVER_CACHE", str(tmp_path / "cache"))


def case(name: str, lines: int = 3, snippet: str | None = None) -> Case:
    original = "".join(f"value_{i} = {i}\n" for i in range(lines)).encode()
    return Case(name, "python", "file.py", original, "add one", snippet, original + b"one = 1\n")


def ready(
    folder: Path, *cases: Case, modes: tuple[str, ...], max_new: int | None = None, **wished: object
) -> Bench:
    selection = Selection(cases, **wished)  # type: ignore[arg-type]
    config = EngineConfig(str(folder), "cpu", "float32", max_new=max_new)
    return prepare(config, choose(modes, [32], [3]).modes, selection, models.Report())


def measure(bench: Bench) -> list[Measured]:
    return [trial.measure() for trial in interleave(bench.jobs, bench.runners)]


def test_all_modes_write_the_same_tokens_in_float32(folder: Path) -> None:
    cases = (case("a"), case("b", 8), case("c", 5, "value_1 = 2\n"))
    bench = ready(folder, *cases, modes=NAMES, max_new=120)
    found = measure(bench)
    assert len(found) == 3 * 5
    for job in bench.jobs:
        runs = {one.mode.name: one.run for one in found if one.case == job.id}
        assert len({run.output for run in runs.values()}) == 1
        assert len({run.stopped for run in runs.values()}) == 1
        assert {run.prompt_tokens for run in runs.values()} == {len(job.prompt)}
        for run in runs.values():
            assert sum(each.emitted for each in run.passes) == len(run.output) <= job.limit
        for name in ("plain", "hf-plain"):
            assert len(runs[name].passes) == len(runs[name].output)
            assert all(each.drafted == 0 for each in runs[name].passes)
    report = report_json(Measurements(found, ("hf-lookup:k=32,n=3",), bench.cost), bench.facts)
    for row in report["modes"]:  # type: ignore[attr-defined]
        assert (row["identical"], row["compared"], row["cases"]) == (3, 3, 3)


def test_modes_without_peers_load_none(folder: Path) -> None:
    sentences: list[str] = []
    config = EngineConfig(str(folder), "cpu", "float32")
    chosen = choose(["plain", "ours"], [10], [2]).modes
    report = models.Report(notice=sentences.append)
    bench = prepare(config, chosen, Selection((case("a"),)), report)
    assert [mode.name for mode, _ in bench.runners] == ["plain", "ours"]
    assert sentences == ["Loading the model …"]


def test_each_proposer_is_a_mode_with_counts_by_source(folder: Path) -> None:
    config = EngineConfig(
        str(folder), "cpu", "float32", max_new=80, draft_model=str(folder), cost="rho=15"
    )
    modes = choose(["plain", "ours:suffix", "ours:model"], [10], [2])
    bench = prepare(config, modes.modes, Selection((case("a"),)), models.Report())
    found = measure(bench)
    assert len({one.run.output for one in found}) == 1
    report = report_json(Measurements(found, (), bench.cost), bench.facts)
    rows = {row["mode"]: row for row in report["modes"]}  # type: ignore[attr-defined]
    assert rows["plain"]["drafted_by"] == {}
    assert set(rows["ours:suffix"]["drafted_by"]) == {"copy"}
    model = rows["ours:model"]  # the target itself: always right
    assert model["drafted_by"] == model["accepted_by"]
    assert set(model["drafted_by"]) == {"model"}
    with pytest.raises(InvalidRequest, match="no proposer"):
        prepare(
            config, choose(["ours:x"], [10], [2]).modes, Selection((case("a"),)), models.Report()
        )


def test_sampling_is_compared_with_our_own_plain_sampling_and_never_with_greedy_peers(
    folder: Path,
) -> None:
    config = EngineConfig(str(folder), "cpu", "float32", max_new=80, sampling=Sampling(0.9, seed=4))
    selection = Selection((case("a"),))
    bench = prepare(config, choose(["plain", "ours"], [10], [2]).modes, selection, models.Report())
    plain, ours = (one.run.output for one in measure(bench))
    assert plain == ours
    greedy = measure(ready(folder, case("a"), modes=("plain",), max_new=80))[0].run.output
    assert greedy != plain
    with pytest.raises(InvalidRequest, match="--modes plain,ours"):
        prepare(config, choose(NAMES, [10], [2]).modes, selection, models.Report())


def test_cases_are_chosen_by_kind_length_and_number(folder: Path) -> None:
    short, long, lazy = case("short"), case("long", 20), case("lazy", 20, "value_1 = 2\n")
    cases = (short, long, lazy)

    def ids(**wished: object) -> list[str]:
        bench = ready(folder, *cases, modes=("plain",), **wished)
        assert bench.facts["cases"] == [job.id for job in bench.jobs]
        return [job.id for job in bench.jobs]

    assert ids() == ["short", "long", "lazy"]
    assert ids(limit=2) == ["short", "long"]
    assert ids(min_output=200) == ["long", "lazy"]
    assert ids(min_output=200, limit=1) == ["long"]
    assert ids(kind="instruction") == ["short", "long"]
    assert ids(kind="snippet") == ["lazy"]


def test_the_least_length_is_that_of_the_expected_answer(folder: Path) -> None:
    asked = case("a")
    tokens = len(asked.expected) + len("```")  # a byte each
    assert ready(folder, asked, modes=("plain",), min_output=tokens).jobs
    with pytest.raises(InvalidRequest, match="No case is left of 1: 0 can't be run"):
        ready(folder, asked, modes=("plain",), min_output=tokens + 1)


def test_a_case_that_does_not_fit_is_named_and_the_others_run(folder: Path) -> None:
    bench = ready(folder, case("huge", 400), case("a"), modes=("plain",))
    assert [job.id for job in bench.jobs] == ["a"]
    assert [each.case for each in bench.refused] == ["huge"]
    (refused,) = bench.facts["refused"]  # type: ignore[misc]
    assert (refused["id"], refused["code"]) == ("huge", "DocumentTooLong")  # type: ignore[has-type]


def test_no_case_that_fits_is_refused_with_the_reason(folder: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"1 can't be run.*huge: Needs about"):
        ready(folder, case("huge", 400), modes=("plain",))


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(InvalidRequest, match="at least 1"):
        Selection((), limit=limit)


# The command


def write_cases(path: Path, *cases: Case) -> Path:
    file = path / "cases.jsonl"
    rows = [
        {
            "id": each.id, "language": each.language, "instruction": each.instruction,
            "original": each.original.decode(), "expected": each.expected.decode(),
        }
        for each in cases
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return file


def command(path: Path, folder: Path, *more: str) -> list[str]:
    return [
        "bench", str(path), "--model", str(folder), "--device", "cpu", "--dtype", "float32",
        "--modes", "plain,ours", *more,
    ]  # fmt: skip


def test_the_command_prints_a_table_and_writes_the_report(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases, out = write_cases(tmp_path, case("a"), case("huge", 400)), tmp_path / "out.json"
    assert main(command(cases, folder, "--json", str(out))) == 0
    printed = capsys.readouterr()
    first, plain, ours, *_ = printed.out.splitlines()
    assert first.split()[:5] == ["mode", "cases", "out", "passes", "tok/pass"]
    assert (plain.split()[0], ours.split()[0]) == ("plain", "ours")
    assert "huge: DocumentTooLong: Needs about" in printed.err
    runs = [line.split(" tokens in ")[0] for line in printed.err.splitlines() if "passes" in line]
    tokens = plain.split()[2]
    assert runs == [f"a · plain: {tokens}", f"a · ours: {tokens}"], "what is done can be followed"
    report = json.loads(out.read_text("utf-8"))
    assert [(run["id"], run["mode"]) for run in report["runs"]] == [("a", "plain"), ("a", "ours")]
    assert (report["interrupted"], report["dtype"]) == (False, "float32")


def test_an_interruption_shows_what_had_been_measured(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measure_trial, out = Trial.measure, tmp_path / "out.json"

    def interrupted(trial: Trial) -> Measured:
        if trial.mode.name == "ours":
            raise KeyboardInterrupt
        return measure_trial(trial)

    monkeypatch.setattr(Trial, "measure", interrupted)
    cases = write_cases(tmp_path, case("a"), case("b"))
    assert main(command(cases, folder, "--json", str(out))) == INTERRUPTED
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].split()[:2] == ["plain", "1"]
    assert printed.err.splitlines()[-1] == "Interrupted: this is what had been measured."
    report = json.loads(out.read_text("utf-8"))
    assert report["interrupted"] is True
    assert [(run["id"], run["mode"]) for run in report["runs"]] == [("a", "plain")]


def test_an_unknown_mode_is_a_coded_refusal_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = write_cases(tmp_path, case("a"))
    assert main(["bench", str(cases), "--modes", "fast"]) == REFUSED
    assert capsys.readouterr().err.startswith("InvalidRequest: Unknown mode 'fast'.")


def test_a_grid_that_is_no_list_of_numbers_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["bench", "cases", "--lookup-k", "ten"])
    assert caught.value.code == REFUSED
    assert "'ten' is no list of numbers, as 10,32" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("mode", "drafting"),
    [("ours", "auto+model+heads"), ("ours:auto", "auto"), ("ours:auto+heads", "auto+heads")],
)
def test_a_specified_mode_drafts_as_it_says_and_ours_as_configured(
    mode: str, drafting: str
) -> None:
    config = EngineConfig("m", draft_model="d", heads="f")
    (found,) = choose([mode], (10,), (2,)).modes
    assert configured(config, found).drafting == drafting
