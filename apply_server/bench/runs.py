"""What is measured: jobs, runs, and the order in which modes take turns at them.

Must not know how a mode decodes, nor how results are added up or shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apply_server.bench.modes import Mode
from apply_server.decode.session import StopRule
from apply_server.request import EditRequest


@dataclass(frozen=True, slots=True)
class Job:
    """One case, as every mode gets it: the same prompt, cap and stop rule.

    `limit` caps the output in tokens; `stop` makes a fresh stop rule for each run; `expected` is
    the answer that the case expects, in tokens.
    """

    id: str
    request: EditRequest
    prompt: tuple[int, ...]
    limit: int
    stop: Callable[[], StopRule]
    expected: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass that chose tokens: how many were drafted for it, how many it emitted."""

    drafted: int
    emitted: int


@dataclass(frozen=True, slots=True)
class Run:
    """One job decoded in one mode; `drafted_by` and `accepted_by` are as in a Report.

    `output` ends with the token that the stop rule ended it with (`stopped`), or at the cap.
    `prefill_s` and `decode_s` are seconds; transformers' first token comes out of its prefill, ours
    out of the first decoding pass. `decode_s` has all that drafting needs in it, of which
    `propose_s` is for finding drafts.
    """

    output: tuple[int, ...]
    passes: tuple[Pass, ...]
    prompt_tokens: int
    prefill_s: float
    decode_s: float
    stopped: bool
    drafted_by: Mapping[str, int] = field(default_factory=dict)
    accepted_by: Mapping[str, int] = field(default_factory=dict)
    propose_s: float = 0.0


Runner = Callable[[Job], Run]


@dataclass(frozen=True, slots=True)
class Measured:
    """A run and whose it is."""

    case: str
    mode: Mode
    run: Run


@dataclass(frozen=True, slots=True)
class Trial:
    """A run to be made."""

    job: Job
    mode: Mode
    runner: Runner

    def measure(self) -> Measured:
        """Make it."""
        return Measured(self.job.id, self.mode, self.runner(self.job))


def interleave(jobs: Sequence[Job], runners: Sequence[tuple[Mode, Runner]]) -> Iterator[Trial]:
    """All modes on one job before the next job, each job starting with another mode.

    So whatever else the machine does, and its warming up, falls on all modes alike.
    """
    for number, job in enumerate(jobs):
        first = number % len(runners)
        for mode, runner in (*runners[first:], *runners[:first]):
            yield Trial(job, mode, runner)
