"""The command line: arguments in, text and exit codes out. The only module that prints.

Results go to stdout, progress and messages to stderr. Must not know how anything is computed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TextIO

from apply_server import __version__, models, terminal
from apply_server.bench.build import Bench, Selection, prepare
from apply_server.bench.modes import GRID_K, GRID_N, KINDS, NAMES, choose
from apply_server.bench.report import Measurements, report_json
from apply_server.bench.runs import Measured, interleave
from apply_server.bench.table import HELP, notes, table
from apply_server.config import EngineConfig, Verify
from apply_server.document import Document
from apply_server.edits import unified_diff
from apply_server.engine import build
from apply_server.engine.base import Done
from apply_server.errors import FAILED, INTERRUPTED, ApplyError, Cancelled, InvalidRequest
from apply_server.files import read_document, write_text
from apply_server.guards import GUARD_NAMES
from apply_server.replay.cases import load_cases
from apply_server.replay.report import as_json, summarise
from apply_server.replay.run import EngineFor, Result, replay
from apply_server.request import EditRequest

APPLIED, NO_CHANGE = 0, 1
EXIT_CODES = """\
exit codes:
  0  applied, or the diff of what would be applied was printed
  1  no changes: the edit is already applied
  2  refused: the request or the edit can't be carried out as it is
  3  error: something that should have worked did not
  130  interrupted; nothing was written
"""
EXAMPLES = """\
examples:
  apply-server apply cart.py --instruction "rename total to subtotal"
  apply-server apply cart.py --snippet suggestion.py --write
  pbpaste | apply-server apply cart.py --snippet - --verify never
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    _accept_any_text(sys.stdout, sys.stderr)
    options = _parser().parse_args(arguments)
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
        return _fail(error, as_json)
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
        config = EngineConfig(options.model, options.device, options.dtype, options.profile)
        bench = prepare(config, choice.modes, selection, terminal.model_report(bars))
        task = bars.add_task("Measuring", detail="", total=len(bench.jobs) * len(bench.runners))
        try:
            for trial in interleave(bench.jobs, bench.runners):
                bars.update(task, detail=f"{trial.job.id} · {trial.mode.name}")
                measured.append(trial.measure())
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
        proposer="none" if getattr(options, "no_speculation", False) else options.proposer,
        cost=getattr(options, "cost", ""),
        max_new=options.max_new,
        verify=Verify(options.verify),
        allowed_guards=frozenset(options.allow),
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
    print(f"{error.code}: {error.message}", file=sys.stderr)
    return error.exit_status


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2))  # ASCII, so that it is JSON in every terminal's encoding


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "apply-server",
        description="Apply an edit to a file with a local code model, exactly and fast.",
        epilog=EXAMPLES + "\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"apply-server {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _apply_parser(commands)
    _replay_parser(commands)
    _bench_parser(commands)
    _models_parser(commands)
    return parser


def _apply_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    apply = _command(
        commands,
        "apply",
        "Apply an instruction or a snippet to one file and print the unified diff; with --write, "
        "write the file.",
        epilog=EXAMPLES + "\n" + EXIT_CODES,
    )
    apply.add_argument("file", help="the file to edit")
    apply.add_argument("-i", "--instruction", default="", help="what to change, in words")
    apply.add_argument(
        "-s", "--snippet", metavar="F", help="a file with the suggested code; - reads stdin"
    )
    apply.add_argument("-w", "--write", action="store_true", help="write the file")
    apply.add_argument("--json", action="store_true", help="one JSON document on stdout")
    apply.add_argument(
        "--no-speculation", action="store_true", help="decode plainly, to compare output or speed"
    )
    apply.add_argument("--encoding", help="the file's encoding, where it can't be told (cp1252, …)")
    apply.add_argument("--language", help="the file's language, where its name doesn't tell")
    _engine_arguments(apply)
    apply.set_defaults(run=_apply)


def _replay_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = _command(
        commands,
        "replay",
        "Replay recorded edits and report exactness, passes and speed. PATH is a folder of "
        "fixtures or a .jsonl file with id, language, original, instruction, snippet, expected.",
    )
    command.add_argument("paths", nargs="+", metavar="PATH")
    command.add_argument(
        "--target",
        choices=("model", "scripted"),
        default="model",
        help="who answers: the model, or a script that knows the expected file (no weights needed)",
    )
    command.add_argument(
        "--baseline", choices=("plain",), help="also decode plainly and compare output and time"
    )
    command.add_argument("--only", metavar="PATTERN", help="only cases whose id contains this")
    command.add_argument("--json", metavar="OUT", help="write the full report to this file")
    command.add_argument(
        "--ignore-snippet",
        action="store_true",
        help="give the model the instruction alone; cases without one are left out",
    )
    command.add_argument(
        "--tokenizer", metavar="NAME", help="for the scripted target: a model's name, or words"
    )
    _engine_arguments(command)
    command.set_defaults(run=_replay)


def _bench_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = _command(
        commands,
        "bench",
        "Decode cases with apply-server and with transformers' generate, in turns, in one process, "
        "on the same prompts and weights, and compare. PATH is as for replay.",
        epilog=HELP,
    )
    command.add_argument("paths", nargs="+", metavar="PATH")
    cases = command.add_argument_group("cases")
    cases.add_argument("--only", metavar="PATTERN", help="only cases whose id contains this")
    cases.add_argument("--kind", choices=KINDS, help="only cases with a snippet, or without")
    cases.add_argument(
        "--min-output",
        type=int,
        default=0,
        metavar="N",
        help="only cases whose expected answer has at least N tokens",
    )
    cases.add_argument("--limit", type=int, metavar="N", help="at most N cases, the first ones")
    command.add_argument(
        "--modes",
        type=_names,
        default=NAMES,
        metavar="A,B",
        help="what to run (default: " + ",".join(NAMES) + ")",
    )
    for name, grid in (("k", GRID_K), ("n", GRID_N)):
        command.add_argument(
            f"--lookup-{name}",
            type=_numbers,
            default=grid,
            metavar="N,N",
            help=f"values of {name} to tune prompt lookup over "
            f"(default: {','.join(map(str, grid))})",
        )
    command.add_argument("--json", metavar="OUT", help="write the full report to this file")
    _model_arguments(command.add_argument_group("engine"))
    command.set_defaults(run=_bench)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers, as 10,32") from None


def _models_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    group = _command(commands, "models", "List, fetch and find models.")
    actions = group.add_subparsers(title="actions", required=True, metavar="ACTION")
    _command(actions, "list", "The models known by name, and which are here.").set_defaults(
        run=_models_list
    )
    for name, run, text in (
        ("pull", _models_pull, "Fetch and convert a model now; prints its folder."),
        ("path", _models_path, "Print the folder of a model that is here."),
    ):
        action = _command(actions, name, text)
        action.add_argument("name", metavar="NAME", help="a model's name (see models list)")
        action.set_defaults(run=run)


def _engine_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("engine")
    _model_arguments(group)
    group.add_argument(
        "--verify",
        choices=[str(choice) for choice in Verify],
        default=str(Verify.ALWAYS),
        help="when the model decides: always; only where a snippet's place is in doubt; or never, "
        "offline and without a model (default: %(default)s)",
    )
    group.add_argument(
        "--allow",
        action="append",
        default=[],
        choices=GUARD_NAMES,
        metavar="GUARD",
        help=f"take the result although this guard objects: {', '.join(GUARD_NAMES)}",
    )
    group.add_argument(
        "--max-new", type=int, metavar="N", help="the longest answer, in tokens (default: by file)"
    )
    group.add_argument(
        "--proposer",
        default="auto",
        help="drafting: auto, suffix, none, or hf-lookup:k=10,n=2 (transformers' rule, to compare)",
    )
    group.add_argument(
        "--cost",
        default="",
        metavar="rho=N",
        help="weigh drafts by passes that cost 1 + (k-1)/N, not by what was measured here",
    )


def _model_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--model",
        default=models.DEFAULT_MODEL,
        help="a name from `models list`, a folder, a .gguf file or a hub id (default: %(default)s)",
    )
    group.add_argument("--device", default="auto", help="cpu, cuda, mps (default: the best one)")
    group.add_argument(
        "--dtype", default="auto", help="float32, bfloat16, float16 (default: by processor)"
    )
    group.add_argument("--profile", default="", help="prompt profile: chat or fastapply")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    description: str,
    epilog: str = "",
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=description,
        description=textwrap.fill(description, 88),
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


if __name__ == "__main__":
    sys.exit(main())
