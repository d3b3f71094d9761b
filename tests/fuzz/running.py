"""How long a fuzz test runs: a few seconds, or with the profile "fuzz" until its time is over."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, settings

PROFILE = "fuzz"
# A round's; the time is looked at between rounds.
_EXAMPLES = 50
# Far above what any case needs, far below what a regex that backtracks without bounds takes.
_CPU_SECONDS = 10.0

settings.register_profile(
    PROFILE, deadline=None, max_examples=_EXAMPLES, suppress_health_check=list(HealthCheck)
)


def fuzzing() -> bool:
    """Whether this is a long run; new cases each time then, the same ones otherwise."""
    return settings.get_current_profile_name() == PROFILE


def fuzzed(examples: int, share: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """For a test under `given`: `examples` of them in an ordinary run.

    With the profile it is run again and again, for `share` of APPLY_FUZZ_MINUTES (default 10),
    and says how many examples that were (pytest shows it with -rP).
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        configured: Any = (_long() if fuzzing() else _short(examples))(test)

        @wraps(configured)
        def run(*args: Any, **kwargs: Any) -> None:
            inner = configured.hypothesis.inner_test
            count = 0

            @wraps(inner)
            def counted(*inner_args: Any, **inner_kwargs: Any) -> None:
                nonlocal count
                count += 1
                inner(*inner_args, **inner_kwargs)

            configured.hypothesis.inner_test = counted
            begin = time.monotonic()
            configured(*args, **kwargs)
            while fuzzing() and time.monotonic() < begin + 60 * share * _minutes():
                configured(*args, **kwargs)
            configured.hypothesis.inner_test = inner
            print(f"{count} examples in {time.monotonic() - begin:.0f} s")  # noqa: T201

        return run

    return decorate


# No explain phase: it runs a failing case a hundred times more.
_PHASES = [phase for phase in Phase if phase is not Phase.explain]


def _long() -> settings:
    return settings(phases=_PHASES)


def _short(examples: int) -> settings:
    """The same cases each time, so that a change is judged by what it changed."""
    return settings(
        phases=_PHASES,
        deadline=None,
        derandomize=True,
        database=None,
        max_examples=examples,
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def bounded() -> Iterator[None]:
    """Fails a case that takes more processor time than any case should (where signals exist)."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    previous = signal.signal(signal.SIGPROF, _too_slow)
    signal.setitimer(signal.ITIMER_PROF, _CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, previous)


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise AssertionError(f"a case took more than {_CPU_SECONDS} s of processor time")


def _minutes() -> float:
    return float(os.environ.get("APPLY_FUZZ_MINUTES", "10"))
