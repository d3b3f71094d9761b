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
    from rich.table import Table


def console() -> Console:
    """Where people read: stderr, so that stdout carries results only."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


@contextmanager
def progress() -> Iterator[Progress]:
    """A live display that disappears when the work is done; nothing on a pipe or in a log."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    screen = console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
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


def results_table(results: Iterable[Result]) -> Table:
    """A replay's cases as a table."""
    from rich.table import Table

    table = Table(box=None)
    table.add_column("case", no_wrap=True)
    for heading in ("result", "out", "passes", "tok/pass", "accepted", "decode s", "vs plain"):
        table.add_column(heading, justify="right")
    for result in results:
        report = result.report
        plain = result.baseline
        table.add_row(
            result.id,
            result.error or ("exact" if result.exact_match else f"{result.similarity:.3f}"),
            str(report.output_tokens),
            str(report.target_passes),
            f"{report.tokens_per_pass:.1f}",
            f"{report.acceptance_rate:.0%}",
            f"{report.decode_s:.2f}",
            f"{plain.decode_speedup:.1f}x {'same' if plain.same_output else 'DIFFERS'}"
            if plain
            else "",
        )
    return table
