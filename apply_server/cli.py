"""The command line: arguments in, text and exit codes out. The only module that prints.

Results go to stdout, progress and messages to stderr. Must not know how anything is computed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TextIO

from apply_server import models, terminal
from apply_server.arguments import build_parser, spelled
from apply_server.bench.build import Bench, Selection, prepare
from apply_server.bench.modes import choose
from apply_server.bench.report import Measurements, report_json
from apply_server.bench.runs import Measured, interleave
from apply_server.bench.table import measured_line, notes, table
from apply_server.config import EngineConfig, Verify
from apply_server.decode.sampling import Sampling
from apply_server.document import Document
from apply_server.edits import unified_diff
from apply_server.engine import build
from apply_server.engine.base import Done
from apply_server.engine.provider import ScriptedAnswers
from apply_server.errors import FAILED, INTERRUPTED, ApplyError, Cancelled, InvalidRequest
from apply_server.files import read_document, write_text
from apply_server.replay.cases import load_cases
from apply_server.replay.report import as_json, summarise
from apply_server.replay.run import EngineFor, Result, replay
from apply_server.request import EditRequest

APPLIED, NO_CHANGE = 0, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    _accept_any_text(sys.stdout, sys.stderr)
    options = build_parser(_COMMANDS).parse_args(arguments)
    try:
        status = _run(options)
        sys.stdout.flush()  # here, as a reader that went away must not become a traceback at exit
        return status
    except BrokenPipeError:
        # The reader went away (`| head`); a second complaint at exit would help nobody.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(options: argparse.Namespace) -> int:
    as_json = getattr(options, "json", None) is True
    try:
        run: Callable[[argparse.Namespace], int] = options.run
        return run(options)
    except ApplyError as error:
        return _fail(error.spelled(spelled), as_json)
    except KeyboardInterrupt:
        return _fail(Cancelled("Interrupted."), as_json)
    except BrokenPipeError:
        raise
    except Exception as error:
        # Left to Python it would exit with 1, which says that there was nothing to change.
        traceback.print_exc()
        _fail(ApplyError(f"This is a fault of apply-server: {error!r}."), as_json)
        return FAILED


def _accept_any_text(*streams: TextIO) -> None:
    """Write what a terminal's encoding lacks as an escape: a diff must not die half way."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _apply(options: argparse.Namespace) -> int:
    started = time.perf_counter()
    path = Path(options.file)
    document, stamp = read_document(path, options.encoding)
    request = EditRequest(
        document, path.name, options.instruction, _snippet(options.snippet), options.language
    )
    try:
        with terminal.progress() as bars:
            engine = build.build_engine(_config(options), terminal.model_report(bars))
            done = terminal.watch(engine.run(request, Event()), bars)
    except KeyboardInterrupt:
        raise Cancelled("Interrupted. Nothing was written.") from None
    data = document.encode(done.text)  # without --write too: what is shown could be written
    if options.write and done.text != document.text:
        write_text(path, stamp, data)
    _show(options, document, done, time.perf_counter() - started)
    return APPLIED if done.text != document.text else NO_CHANGE


def _show(options: argparse.Namespace, document: Document, done: Done, seconds: float) -> None:
    diff = unified_diff(document, done.text, Path(options.file).name)
    if options.json:
        _print_json(
            {
                "status": _status(options, diff),
                "file": options.file,
                "diff": diff,
                "verified": done.verified,
                "warnings": list(done.warnings),
                "report": done.report.to_json(),
            }
        )
        return
    sys.stdout.write(diff)
    for warning in done.warnings:
        print(f"Warning: {warning}", file=sys.stderr)
    if not diff:
        print("No changes: the edit is already applied.", file=sys.stderr)
    elif options.write:
        print(_applied(options.file, done, document, seconds), file=sys.stderr)


def _status(options: argparse.Namespace, diff: str) -> str:
    if not diff:
        return "noChanges"
    return "applied" if options.write else "proposed"


def _applied(file: str, done: Done, document: Document, seconds: float) -> str:
    added = sum(len(edit.lines) for edit in done.edits)
    removed = sum(edit.end - edit.start for edit in done.edits)
    took = f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    copied = 1 - added / max(1, len(document.lines) + added - removed)
    return f"Applied {Path(file).name} +{added} −{removed} · {took} · {copied:.0%} copied"


def _replay(options: argparse.Namespace) -> int:
    cases = load_cases([Path(path) for path in options.paths], options.only)
    if options.ignore_snippet:
        cases = [replace(case, snippet=None) for case in cases if case.instruction]
    results: list[Result] = []
    status = 0
    with terminal.progress() as bars:
        engines, tokenizer = _engines(options, terminal.model_report(bars))
        plain = None if options.baseline is None else engines("none")
        task = bars.add_task("Replaying", detail="", total=len(cases))
        print(terminal.RESULT_HEADINGS)
        try:
            for result in replay(cases, engines(options.proposer), plain):
                results.append(result)
                print(terminal.result_row(result), flush=True)
                bars.update(task, advance=1, detail=result.id)
        except KeyboardInterrupt:
            print(f"Interrupted after {len(results)} of {len(cases)} cases.", file=sys.stderr)
            status = INTERRUPTED
    target = options.model if options.target == "model" else "scripted"
    summary = summarise(results, target, tokenizer)
    if options.json:
        report = json.dumps(as_json(results, summary), indent=2)
        _write_report(Path(options.json), report)
    _print_json(summary)
    return status


def _engines(
    options: argparse.Namespace, report: models.Report
) -> tuple[Callable[[str], EngineFor], str]:
    """Proposer name → engine for each case; and the tokenizer's name."""
    config = _config(options)
    if config.verify is not Verify.ALWAYS:
        engine = build.build_engine(config, report)
        return (lambda proposer: lambda request, expected: engine), "none"
    if options.target == "scripted":
        build.check_scripted(config)
        tokenizer = build.choose_tokenizer(options.tokenizer)

        def scripted(proposer: str) -> EngineFor:
            changed = replace(config, proposer=proposer)
            return lambda request, expected: build.scripted_engine(
                tokenizer, request, expected, changed
            )

        return scripted, tokenizer.name
    model = build.load_model(config, report)

    def real(proposer: str) -> EngineFor:
        changed = replace(config, proposer=proposer)
        engine = build.guarded(build.model_engine(model, changed), changed)
        return lambda request, expected: engine

    return real, model.tokenizer.name


def _bench(options: argparse.Namespace) -> int:
    choice = choose(options.modes, options.lookup_k, options.lookup_n)
    cases = load_cases([Path(path) for path in options.paths], options.only)
    selection = Selection(tuple(cases), options.kind, options.min_output, options.limit)
    measured: list[Measured] = []
    status = 0
    with terminal.progress() as bars:
        config = EngineConfig(
            options.model,
            options.device,
            options.dtype,
            options.profile,
            options.threads,
            proposer=options.proposer,
            draft_model=options.draft_model,
            heads=options.heads,
            sampling=_sampling(options),
        )
        bench = prepare(
            config,
            choice.modes,
            selection,
            terminal.model_report(bars),
            scripted=options.scripted,
        )
        task = bars.add_task("Measuring", detail="", total=len(bench.jobs) * len(bench.runners))
        try:
            for trial in interleave(bench.jobs, bench.runners):
                bars.update(task, detail=f"{trial.job.id} · {trial.mode.name}")
                measured.append(trial.measure())
                bars.console.print(measured_line(measured[-1]), soft_wrap=True)
                bars.advance(task)
        except KeyboardInterrupt:
            status = INTERRUPTED
    _show_bench(options, bench, Measurements(measured, choice.tuned, bench.cost), status)
    return status


def _show_bench(
    options: argparse.Namespace, bench: Bench, measurements: Measurements, status: int
) -> None:
    from rich.console import Console

    shown = table(measurements.rows())
    screen = Console(highlight=False)
    # Lines that wrap can still be read, numbers cut to fit can't.
    screen.width = max(
        screen.width, screen.measure(shown, options=screen.options.update(width=999)).maximum
    )
    screen.print(shown)
    for line in notes(bench.facts, measurements):
        print(line)
    for refused in bench.refused:
        print(f"{refused.case}: {refused.error.code}: {refused.error.message}", file=sys.stderr)
    if status == INTERRUPTED:
        print("Interrupted: this is what had been measured.", file=sys.stderr)
    if options.json:
        facts = {**bench.facts, "interrupted": status == INTERRUPTED}
        _write_report(Path(options.json), json.dumps(report_json(measurements, facts), indent=2))


def _serve(options: argparse.Namespace) -> int:
    from apply_server.lsp.serve import Address, serve
    from apply_server.lsp.settings import Settings

    answers = None
    if options.answers is not None:
        answers = ScriptedAnswers.load(Path(options.answers), options.pass_delay_ms / 1000)
    listening = {kind: getattr(options, kind) for kind in ("tcp", "ws")}
    address = next((Address(kind, *at) for kind, at in listening.items() if at), None)
    target = "scripted" if options.target == "scripted" else ""
    return serve(Settings(options.model, target=target), answers, address, options.log_level)


def _heads_train(options: argparse.Namespace) -> int:
    from apply_server.heads.lessons import lessons
    from apply_server.heads.run import Plan, Trained, train_heads

    cases = lessons([Path(path) for path in options.paths])[: options.limit]
    config = EngineConfig(
        options.model, options.device, options.dtype, options.profile, options.threads
    )
    plan = Plan(options.count, options.steps, options.minutes)
    with terminal.progress() as bars:
        task = bars.add_task("Loading", detail="")
        for event in train_heads(cases, config, plan, terminal.model_report(bars)):
            if isinstance(event, Trained):
                shares = ", ".join(f"{share:.0%}" for share in event.accuracies)
                print(f"{event.path}: right in novel places of held-out answers: {shares};")
                print(f"a chain of them makes {event.tokens_per_pass:.2f} tokens a pass there.")
            else:
                bars.update(
                    task,
                    description=event.name,
                    completed=event.done,
                    total=event.total,
                    detail=event.detail,
                )
    return 0


def _heads_list(options: argparse.Namespace) -> int:
    from apply_server.heads.run import known_heads

    for name, facts in known_heads():
        print(f"{name:32} {facts}")
    return 0


def _models_list(options: argparse.Namespace) -> int:
    for status in models.model_store().statuses():
        entry = status.entry
        size = f"{entry.size_bytes / 1e9:.2f} GB"
        print(f"{entry.name:32} {status.state:10} {size:>8}  {entry.licence}  {entry.description}")
    return 0


def _models_pull(options: argparse.Namespace) -> int:
    with terminal.progress() as bars:
        files = models.resolve(options.name, terminal.model_report(bars))
    print(files.folder)
    return 0


def _models_path(options: argparse.Namespace) -> int:
    print(models.model_store().path(options.name))
    return 0


def _config(options: argparse.Namespace) -> EngineConfig:
    return EngineConfig(
        model=options.model,
        device=options.device,
        dtype=options.dtype,
        profile=options.profile,
        threads=options.threads,
        proposer="none" if getattr(options, "no_speculation", False) else options.proposer,
        draft_model=getattr(options, "draft_model", ""),
        heads=getattr(options, "heads", ""),
        cost=getattr(options, "cost", ""),
        sampling=_sampling(options),
        max_new=options.max_new,
        verify=Verify(options.verify),
        allowed_guards=frozenset(options.allow),
    )


def _sampling(options: argparse.Namespace) -> Sampling:
    return Sampling(
        options.temperature,
        options.top_p,
        options.top_k,
        options.seed,
        options.repetition_penalty,
    )


def _snippet(source: str | None) -> str:
    if source is None:
        return ""
    if source == "-":
        return Document.from_bytes(sys.stdin.buffer.read()).text
    return read_document(Path(source))[0].text


def _write_report(path: Path, report: str) -> None:
    try:
        path.write_text(report + "\n", "utf-8")
    except OSError as error:
        raise InvalidRequest(f"{path} can't be written: {error.strerror or error}.") from error


def _fail(error: ApplyError, as_json: bool) -> int:
    if as_json:
        _print_json({"status": "failed", "error": error.to_json()})
    elif "diff" in error.details:
        print(error.details["diff"], file=sys.stderr)
    print(f"{error.code}: {error.message}", file=sys.stderr)
    return error.exit_status


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2))  # ASCII, so that it is JSON in every terminal's encoding


_COMMANDS = {
    "apply": _apply,
    "replay": _replay,
    "bench": _bench,
    "serve": _serve,
    "heads list": _heads_list,
    "heads train": _heads_train,
    "models list": _models_list,
    "models pull": _models_pull,
    "models path": _models_path,
}


if __name__ == "__main__":
    sys.exit(main())
