"""The command line's grammar: commands, options, and the help that teaches them.

Must not know how a command is carried out.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Mapping
from typing import TypeAlias

from apply_server import __version__, models
from apply_server.bench.modes import GRID_K, GRID_N, KINDS, NAMES
from apply_server.bench.table import HELP
from apply_server.config import Verify
from apply_server.decode.sampling import GREEDY
from apply_server.errors import Remedy
from apply_server.guards import GUARD_NAMES

Command = Callable[[argparse.Namespace], int]
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

# Settings whose option has another name.
_FLAGS: Mapping[str, str] = {"allowed_guards": "--allow"}
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


def build_parser(run: Mapping[str, Command]) -> argparse.ArgumentParser:
    """The whole command line; `run` holds what carries out each command, by its name."""
    parser = argparse.ArgumentParser(
        "apply-server",
        description="Apply an edit to a file with a local code model, exactly and fast.",
        epilog=EXAMPLES + "\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"apply-server {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _apply_parser(commands, run)
    _replay_parser(commands, run)
    _bench_parser(commands, run)
    _serve_parser(commands, run)
    _models_parser(commands, run)
    _heads_parser(commands, run)
    return parser


def spelled(remedy: Remedy) -> str:
    """A remedy's setting as it is typed here."""
    flag = _FLAGS.get(remedy.setting, "--" + remedy.setting.replace("_", "-"))
    return "`" + " ".join(f"{flag} {value}" for value in remedy.values) + "`"


def _apply_parser(commands: Commands, run: Mapping[str, Command]) -> None:
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
    apply.set_defaults(run=run["apply"])


def _replay_parser(commands: Commands, run: Mapping[str, Command]) -> None:
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
    command.set_defaults(run=run["replay"])


def _bench_parser(commands: Commands, run: Mapping[str, Command]) -> None:
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
        help="what to run (default: " + ",".join(NAMES) + "); ours:SPEC is ours with that proposer",
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
    command.add_argument(
        "--scripted",
        action="store_true",
        help="the model makes its passes, but the expected answers are taken as its choices: for "
        "answers that no model would give, and for weights that know nothing",
    )
    command.add_argument("--json", metavar="OUT", help="write the full report to this file")
    group = command.add_argument_group("engine")
    _model_arguments(group)
    _drafting_arguments(group)
    _sampling_arguments(command)
    command.set_defaults(run=run["bench"])


def _serve_parser(commands: Commands, run: Mapping[str, Command]) -> None:
    command = _command(
        commands,
        "serve",
        "Run the language server for an editor, over its standard streams if nothing else is said.",
    )
    ways = command.add_mutually_exclusive_group()
    ways.add_argument("--stdio", action="store_true", help="standard streams (the default)")
    for kind, what in (("tcp", "TCP"), ("ws", "WebSocket")):
        ways.add_argument(
            f"--{kind}",
            type=_address,
            metavar="[HOST:]PORT",
            help=f"listen for {what} clients (default host: this machine only)",
        )
    command.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="what is logged to stderr (default: %(default)s)",
    )
    command.add_argument(
        "--model", default=models.DEFAULT_MODEL, help="where the editor doesn't set one"
    )
    script = command.add_argument_group("without a model, for tests")
    script.add_argument("--target", choices=("model", "scripted"), default="model")
    script.add_argument(
        "--answers",
        metavar="FILE",
        help="JSON: file name or SHA-256 of its text → the text after the edit",
    )
    script.add_argument(
        "--pass-delay-ms", type=float, default=0.0, metavar="N", help="how long each pass takes"
    )
    # Node's language client names its process; we learn it from the initialize request.
    command.add_argument("--clientProcessId", help=argparse.SUPPRESS)
    command.set_defaults(run=run["serve"])


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no address, as 127.0.0.1:8123")
    return host.strip("[]") or "127.0.0.1", int(port)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers, as 10,32") from None


def _heads_parser(commands: Commands, run: Mapping[str, Command]) -> None:
    group = _command(
        commands, "heads", "Train and list draft heads, which guess novel text from hidden states."
    )
    actions = group.add_subparsers(title="actions", required=True, metavar="ACTION")
    _command(actions, "list", "The draft heads beside known models.").set_defaults(
        run=run["heads list"]
    )
    action = _command(
        actions,
        "train",
        "Train draft heads on what the model would write in source files with holes, and leave "
        "them beside the model. Ctrl-C stops; the same command goes on from there.",
    )
    action.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="folders of source files, or cases as for replay (default: Python's own library)",
    )
    action.add_argument("--limit", type=int, metavar="N", help="read at most N pieces of files")
    for name, kind, default, text in (
        ("count", int, 3, "heads"),
        ("steps", int, 600, "steps of training"),
        ("minutes", float, 60.0, "the most time for all of it"),
    ):
        words = f"{text} (default: {default:g})"
        action.add_argument(f"--{name}", type=kind, default=default, metavar="N", help=words)
    _model_arguments(action.add_argument_group("engine"))
    action.set_defaults(run=run["heads train"])


def _models_parser(commands: Commands, run: Mapping[str, Command]) -> None:
    group = _command(commands, "models", "List, fetch and find models.")
    actions = group.add_subparsers(title="actions", required=True, metavar="ACTION")
    _command(actions, "list", "The models known by name, and which are here.").set_defaults(
        run=run["models list"]
    )
    for name, text in (
        ("pull", "Fetch and convert a model now; prints its folder."),
        ("path", "Print the folder of a model that is here."),
    ):
        action = _command(actions, name, text)
        action.add_argument("name", metavar="NAME", help="a model's name (see models list)")
        action.set_defaults(run=run[f"models {name}"])


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
    _drafting_arguments(group)
    group.add_argument(
        "--cost",
        default="",
        metavar="rho=N",
        help="weigh drafts by passes that cost 1 + (k-1)/N, not by what was measured here",
    )
    _sampling_arguments(command)


def _drafting_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--proposer",
        default="auto",
        help="drafting: auto, chain, suffix, none, or hf-lookup:k=10,n=2 (transformers' rule, to "
        "compare); and for novel text +model, +model:sample or +heads (auto+heads)",
    )
    group.add_argument(
        "--heads",
        default="",
        metavar="FILE",
        help="draft heads, also Medusa's (default: those that `heads train` left beside the model)",
    )
    group.add_argument(
        "--draft-model",
        default="",
        metavar="NAME",
        help="a smaller model with the same tokenizer, which drafts where nothing can be copied",
    )


def _sampling_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group(
        "sampling", "The same settings and seed give the same output, with drafts and without."
    )
    for name, kind, default, text in (
        ("temperature", float, GREEDY.temperature, "0 takes the likeliest token"),
        ("top-p", float, GREEDY.top_p, "draw from the likeliest tokens that make up this share"),
        ("top-k", int, GREEDY.top_k, "draw from this many of the likeliest tokens; 0 from all"),
        ("seed", int, GREEDY.seed, "another number draws another answer"),
        (
            "repetition-penalty",
            float,
            GREEDY.repetition_penalty,
            "above 1 makes tokens of prompt and answer less likely",
        ),
    ):
        group.add_argument(
            f"--{name}",
            type=kind,
            default=default,
            metavar="N",
            help=f"{text} (default: %(default)s)",
        )


def _model_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--model",
        default=models.DEFAULT_MODEL,
        help="a name from `models list`, a folder, a .gguf file or a hub id (default: %(default)s)",
    )
    group.add_argument("--device", default="auto", help="cpu, cuda, mps (default: the best one)")
    group.add_argument(
        "--dtype", default="auto", help="int8, float32, bfloat16, float16 (default: by processor)"
    )
    group.add_argument(
        "--threads",
        type=int,
        default=0,
        metavar="N",
        help="processor threads that the model computes with (default: as many as measure best)",
    )
    group.add_argument("--profile", default="", help="prompt profile: chat or fastapply")


def _command(
    commands: Commands,
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
