"""Measurements → one row for each mode, and the whole as JSON.

Rates are of sums, not means of rates, so a long case weighs what it costs. Must not know how
anything was measured or where it is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from apply_server.bench.modes import HF_LOOKUP_BEST, HF_PLAIN, PLAIN, Family, Mode
from apply_server.bench.prediction import Prediction, predict
from apply_server.bench.runs import Measured, Run
from apply_server.decode.speedup import CostTable

_PLAIN_OF = {Family.OURS: PLAIN, Family.HF: HF_PLAIN}


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over runs. Rates are tokens per second; a rate of nothing is 0."""

    prompt_tokens: int
    output_tokens: int
    passes: int
    drafted_tokens: int
    prefill_s: float
    decode_s: float
    propose_s: float

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Totals:
        return cls(
            sum(run.prompt_tokens for run in runs),
            sum(len(run.output) for run in runs),
            sum(len(run.passes) for run in runs),
            sum(each.drafted for run in runs for each in run.passes),
            sum(run.prefill_s for run in runs),
            sum(run.decode_s for run in runs),
            sum(run.propose_s for run in runs),
        )

    @property
    def tokens_per_pass(self) -> float:
        """Output tokens over all passes that chose tokens."""
        return _ratio(self.output_tokens, self.passes)

    @property
    def drafted_per_output(self) -> float:
        """Drafted tokens, accepted or not, over output tokens."""
        return _ratio(self.drafted_tokens, self.output_tokens)

    @property
    def decode_rate(self) -> float:
        """Output tokens per second of decoding."""
        return _ratio(self.output_tokens, self.decode_s)

    @property
    def prefill_rate(self) -> float:
        """Prompt tokens per second of prefill."""
        return _ratio(self.prompt_tokens, self.prefill_s)

    @property
    def drafting_share(self) -> float:
        """What finding drafts takes of the time of decoding."""
        return _ratio(self.propose_s, self.decode_s)

    @property
    def pass_s(self) -> float:
        """Seconds per pass: of one token where nothing is drafted."""
        return _ratio(self.decode_s, self.passes)


@dataclass(frozen=True, slots=True)
class Row:
    """One mode over its cases. None where the run to compare with is missing.

    Speed-ups are ratios of decode rates over the cases that both modes have, `identical` counts
    the runs whose output is plain decoding's, token for token, of `compared`; `sources` has the
    drafted and the accepted tokens of each source.
    """

    mode: str
    settings: str
    cases: int
    totals: Totals
    speedup_over_hf_plain: float | None
    speedup_over_plain: float | None
    fraction_of_rho: float | None
    identical: int
    compared: int
    prediction: Prediction
    sources: Mapping[str, tuple[int, int]]

    def to_json(self) -> dict[str, object]:
        """All of it by name."""
        totals = self.totals
        return {
            "mode": self.mode,
            "settings": self.settings,
            "cases": self.cases,
            **asdict(totals),
            "tokens_per_pass": totals.tokens_per_pass,
            "drafted_per_output": totals.drafted_per_output,
            "tokens_per_s": totals.decode_rate,
            "drafting_share": totals.drafting_share,
            "speedup_over_hf_plain": self.speedup_over_hf_plain,
            "speedup_over_plain": self.speedup_over_plain,
            "fraction_of_rho": self.fraction_of_rho,
            "identical": self.identical,
            "compared": self.compared,
            **asdict(self.prediction),
            "drafted_by": {name: drafted for name, (drafted, _) in self.sources.items()},
            "accepted_by": {name: accepted for name, (_, accepted) in self.sources.items()},
        }


class Measurements:
    """All runs of a benchmark so far. `tuned` names the modes that compete for the best lookup."""

    def __init__(self, measured: Sequence[Measured], tuned: Sequence[str], cost: CostTable) -> None:
        self._runs: dict[str, dict[str, Run]] = {}
        self._modes: dict[str, Mode] = {}
        self._tuned = tuned
        self._cost = cost
        for one in measured:
            self._modes[one.mode.name] = one.mode
            self._runs.setdefault(one.mode.name, {})[one.case] = one.run

    def rho(self, family: Family) -> float | None:
        """Prefill rate × time of a one-token pass: no exact decoding gains more over plain.

        Prefill is averaged over all of the family's runs, the pass over its plain ones.
        """
        plain = self._totals(_PLAIN_OF[family])
        return self._prefill_rate(family) * plain.pass_s if plain.passes else None

    def rows(self) -> list[Row]:
        """A row for each mode, in the order of the first runs; of the tuned ones the best only."""
        rows = [self._row(name, name) for name in self._modes if name not in self._tuned]
        best = self.best()
        return rows if best is None else [*rows, self._row(best, HF_LOOKUP_BEST)]

    def best(self) -> str | None:
        """The tuned mode with the highest decode rate over the cases that all of them have."""
        run = [name for name in self._tuned if name in self._runs]
        shared = set.intersection(*(set(self._runs[name]) for name in run)) if run else set()
        if not shared:
            return None
        return max(run, key=lambda name: self._totals(name, shared).decode_rate)

    def run_rows(self) -> list[dict[str, object]]:
        """One JSON object for each run."""
        return [
            self._run_json(case, self._modes[name], run)
            for name, runs in self._runs.items()
            for case, run in runs.items()
        ]

    def _row(self, name: str, shown: str) -> Row:
        mode, runs = self._modes[name], self._runs[name]
        totals = self._totals(name)
        checks = [self._differs_at(case, name, run) for case, run in runs.items()]
        known = [at for found, at in checks if found]
        return Row(
            mode=shown,
            settings=f"k={mode.lookup.k} n={mode.lookup.n}" if mode.lookup else "",
            cases=len(runs),
            totals=totals,
            speedup_over_hf_plain=self._speedup(name, HF_PLAIN),
            speedup_over_plain=self._speedup(name, PLAIN),
            fraction_of_rho=totals.decode_rate / self._prefill_rate(mode.family),
            identical=known.count(None),
            compared=len(known),
            prediction=predict(runs.values(), self._cost if mode.family is Family.OURS else None),
            sources=_sources(runs.values()),
        )

    def _totals(self, name: str, cases: set[str] | None = None) -> Totals:
        runs = self._runs.get(name, {})
        return Totals.of([run for case, run in runs.items() if cases is None or case in cases])

    def _prefill_rate(self, family: Family) -> float:
        names = [name for name, mode in self._modes.items() if mode.family is family]
        return Totals.of([run for name in names for run in self._runs[name].values()]).prefill_rate

    def _speedup(self, name: str, base: str) -> float | None:
        shared = set(self._runs[name]) & set(self._runs.get(base, {}))
        if not shared:
            return None
        return _ratio(
            self._totals(name, shared).decode_rate, self._totals(base, shared).decode_rate
        )

    def _differs_at(self, case: str, mode: str, run: Run) -> tuple[bool, int | None]:
        """(whether there is a plain run of the case, where its output differs first).

        Its own family's plain run where there is one: the peers have no int8.
        """
        own = _PLAIN_OF[self._modes[mode].family]
        names = (name for name in (own, PLAIN, HF_PLAIN) if case in self._runs.get(name, {}))
        known = [self._runs[name][case] for name in names]
        if not known:
            return False, None
        return True, _first_difference(run.output, known[0].output)

    def _run_json(self, case: str, mode: Mode, run: Run) -> dict[str, object]:
        totals = Totals.of([run])
        compared, at = self._differs_at(case, mode.name, run)
        return {
            "id": case,
            "mode": mode.name,
            "lookup": asdict(mode.lookup) if mode.lookup else None,
            **asdict(totals),
            "tokens_per_pass": totals.tokens_per_pass,
            "drafted_per_output": totals.drafted_per_output,
            "tokens_per_s": totals.decode_rate,
            "drafting_share": totals.drafting_share,
            "stopped": run.stopped,
            "identical": at is None if compared else None,
            "differs_at": at,
        }


def report_json(measurements: Measurements, facts: dict[str, object]) -> dict[str, object]:
    """The whole report; `facts` say what was measured on what."""
    rho = {str(family): measurements.rho(family) for family in Family}
    rows = [row.to_json() for row in measurements.rows()]
    return {**facts, "rho": rho, "modes": rows, "runs": measurements.run_rows()}


def _sources(runs: Iterable[Run]) -> dict[str, tuple[int, int]]:
    drafted: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    for run in runs:
        drafted.update(run.drafted_by)
        accepted.update(run.accepted_by)
    return {source: (drafted[source], accepted[source]) for source in sorted(drafted)}


def _first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    if tuple(one) == tuple(other):
        return None
    pairs = zip(one, other, strict=False)
    shorter = min(len(one), len(other))
    return next((at for at, (a, b) in enumerate(pairs) if a != b), shorter)


def _ratio(amount: float, base: float) -> float:
    return amount / base if base else 0.0
