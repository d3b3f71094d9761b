"""Progress for a person at a terminal, on stderr; silent where nobody watches.

Must not know how the work is done: it is told of events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from apply_server import models
from apply_server.engine.base import Decoding, Done, EngineEvent, Prefilling
from apply_server.replay.run import Result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def console() -> Console:
    """Where people read: stderr, so that stdout carries results only."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False)


@contextmanager
def progress() -> Iterator[Progress]:
    """A live display that disappears when the work is done; nothing on a pipe or in a log."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    screen = console()
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[detail]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bars:
        yield bars


def model_report(bars: Progress) -> models.Report:
    """Fetching and converting a model as bars and lines of text."""
    words = {"fetch": "Fetching the model", "verify": "Verifying it", "convert": "Converting it"}
    shown: dict[str, object] = {}

    def show(step: models.Progress) -> None:
        task = shown.get(step.stage)
        if task is None:
            task = shown[step.stage] = bars.add_task(words[step.stage], detail="")
        total = step.total or 0
        detail = f"{step.done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else ""
        bars.update(task, completed=step.done, total=step.total, detail=detail)  # type: ignore[arg-type]

    def notice(sentence: str) -> None:
        # Said on a pipe as well: a download of a gigabyte must not come as a surprise.
        bars.console.print(sentence, soft_wrap=True)

    return models.Report(show, notice)


def watch(events: Iterable[EngineEvent], bars: Progress) -> Done:
    """Show a job's events until its end."""
    task = bars.add_task("Starting", detail="", total=1.0)
    for event in events:
        match event:
            case Prefilling(done, total):
                detail = f"{done} of {total} tokens"
                bars.update(task, description="Reading", completed=done / total, detail=detail)
            case Decoding(share, rate, accepted):
                detail = f"{share:.0%} · {rate:.0f} tokens/s · {accepted:.0%} of drafts accepted"
                bars.update(task, description="Writing", completed=share, detail=detail)
            case Done():
                return event
    raise AssertionError("an engine's last event is Done")


RESULT_HEADINGS = f"{'case':44} {'result':>16} {'out':>6} {'passes':>6} {'tok/pass':>8} {'s':>7}"


def result_row(result: Result) -> str:
    """A replayed case as a line under RESULT_HEADINGS, with the speed-up where there is one."""
    report, plain = result.report, result.baseline
    outcome = result.error or ("exact" if result.exact_match else f"{result.similarity:.3f}")
    row = (
        f"{result.id[-44:]:44} {outcome:>16} {report.output_tokens:6} {report.target_passes:6} "
        f"{report.tokens_per_pass:8.1f} {report.prefill_s + report.decode_s:7.1f}"
    )
    if plain is None:
        return row
    same = "same output" if plain.same_output else "OUTPUT DIFFERS"
    return f"{row}  {plain.decode_speedup:.1f}x plain, {same}"
