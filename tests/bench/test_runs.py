"""Whose turn it is."""

from __future__ import annotations

from apply_server.bench.runs import Job, Run, interleave
from tests.bench.support import HF_PLAIN, OURS, PLAIN, Until, run
from tests.engine.support import request


def job(name: str) -> Job:
    return Job(name, request("a\n", "x"), (1, 2), 5, lambda: Until(1))


def test_every_mode_takes_its_turn_at_each_job_and_another_one_begins() -> None:
    made: list[str] = []

    def runner(name: str) -> Run:
        made.append(name)
        return run([1])

    modes = [(mode, lambda one, mode=mode: runner(f"{one.id} {mode.name}")) for mode in
             (PLAIN, HF_PLAIN, OURS)]  # fmt: skip
    results = [trial.measure() for trial in interleave([job("a"), job("b")], modes)]
    assert made == ["a plain", "a hf-plain", "a ours", "b hf-plain", "b ours", "b plain"]
    assert [f"{each.case} {each.mode.name}" for each in results] == made


def test_nothing_runs_before_it_is_asked_for() -> None:
    made: list[str] = []
    trials = interleave([job("a")], [(PLAIN, lambda one: made.append(one.id) or run([1]))])
    trial = next(trials)
    assert (trial.job.id, trial.mode, made) == ("a", PLAIN, [])
    assert trial.measure().run == run([1])
    assert made == ["a"]
