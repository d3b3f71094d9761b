"""The command line: what it prints, what it writes, how it exits."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from apply_server import models
from apply_server.cli import main
from apply_server.config import EngineConfig, Verify
from apply_server.decode.sampling import Sampling
from apply_server.engine import build
from apply_server.engine.base import Engine, EngineEvent
from apply_server.request import EditRequest
from tests.engine.support import Bench, save_model

ROOT = Path(__file__).parents[1]
ORIGINAL = "def f():\n    return 1\n\n\ndef g():\n    return 2  # zwei → 日\n"
CHANGED = ORIGINAL.replace("return 2", "return 3")
PATCH = "def g():\n    return 3  # zwei → 日\n"
DIFF = (
    "--- a/file.py\n+++ b/file.py\n@@ -3,4 +3,4 @@\n \n \n def g():\n"
    "-    return 2  # zwei → 日\n+    return 3  # zwei → 日\n"
)
SPLICE = ("--verify", "never")


@dataclass
class Ran:
    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return dict(json.loads(self.out))


@dataclass
class Desk:
    """A folder with a file and a snippet, and the command line over it."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    file: Path = field(init=False)
    snippet: Path = field(init=False)

    def __post_init__(self) -> None:
        self.file, self.snippet = self.folder / "file.py", self.folder / "snippet.py"
        self.file.write_text(ORIGINAL, "utf-8")
        self.snippet.write_text(PATCH, "utf-8")

    def run(self, *arguments: str) -> Ran:
        status = main(arguments)
        return Ran(status, *self.capture.readouterr())

    def apply(self, *arguments: str) -> Ran:
        return self.run("apply", str(self.file), *arguments)

    def splice(self, *arguments: str) -> Ran:
        return self.apply("--snippet", str(self.snippet), *SPLICE, *arguments)

    def contents(self) -> dict[str, bytes | None]:
        paths = sorted(self.folder.rglob("*"))
        return {str(path): path.read_bytes() if path.is_file() else None for path in paths}

    def check_refused(self, arguments: Sequence[str], status: int, code: str) -> Ran:
        """Refused with this code, as text and as JSON, and nothing changed."""
        before = self.contents()
        plain = self.run(*arguments)
        assert (plain.status, plain.out) == (status, "")
        assert f"{code}: " in plain.err
        assert "Traceback" not in plain.err
        ran = self.run(*arguments, "--json")
        assert ran.status == status
        assert ran.json["status"] == "failed"
        assert ran.json["error"]["code"] == code
        assert self.contents() == before
        return ran


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    folder = tmp_path / "desk"
    folder.mkdir()
    return Desk(folder, capsys)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random model with room for 600 tokens."""
    return str(save_model(tmp_path_factory.mktemp("model"), context=600))


@pytest.fixture
def model_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPLY_SERVER_CACHE", str(tmp_path / "cache"))


def use(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> list[EngineConfig]:
    """Let the command line run this engine; the configurations it was asked for."""
    configs: list[EngineConfig] = []

    def make(config: EngineConfig, report: models.Report) -> Engine:
        configs.append(config)
        return engine

    monkeypatch.setattr(build, "build_engine", make)
    return configs


@dataclass
class Acting:
    """An engine that does something in the middle of its work."""

    act: Callable[[], None]
    answer: str = f"{CHANGED}```"

    def run(self, request: EditRequest, cancel: Event) -> Iterator[EngineEvent]:
        self.act()
        yield from Bench(self.answer).run(request, cancel)


# Results


def test_the_diff_is_printed_and_nothing_is_written(desk: Desk) -> None:
    before = desk.contents()
    ran = desk.splice()
    assert (ran.status, ran.out, ran.err) == (0, DIFF, "")
    assert desk.contents() == before


def test_write_writes_and_a_second_time_there_is_nothing_to_do(desk: Desk) -> None:
    ran = desk.splice("--write")
    assert (ran.status, ran.out) == (0, DIFF)
    assert ran.err.startswith("Applied file.py +1 −1 · ")
    assert ran.err.endswith(" · 83% copied\n")
    assert desk.file.read_text("utf-8") == CHANGED
    again = desk.splice("--write")
    assert (again.status, again.out) == (1, "")
    assert again.err == "No changes: the edit is already applied.\n"
    assert {path.name for path in desk.folder.iterdir()} == {"file.py", "snippet.py"}


@pytest.mark.parametrize(("write", "status"), [((), "proposed"), (("--write",), "applied")])
def test_json_is_one_document(desk: Desk, write: tuple[str, ...], status: str) -> None:
    ran = desk.splice("--json", *write)
    assert (ran.status, ran.err) == (0, "")
    assert ran.json | {"report": {}} == {
        "status": status,
        "file": str(desk.file),
        "diff": DIFF,
        "verified": False,
        "warnings": [],
        "report": {},
    }
    assert (desk.file.read_text("utf-8") == CHANGED) is bool(write)


def test_json_of_an_edit_that_is_applied_already(desk: Desk) -> None:
    desk.file.write_text(CHANGED, "utf-8")
    ran = desk.splice("--json")
    assert (ran.status, ran.json["status"], ran.json["diff"]) == (1, "noChanges", "")


def test_every_byte_outside_the_edit_stays(desk: Desk) -> None:
    data = b"\xef\xbb\xbfdef f():\r\n    return 1\x0c \n\r\n\ndef g():\r\n    return 2"
    desk.file.write_bytes(data)
    desk.snippet.write_text("def g():\n    return 3\n")
    assert desk.splice("--write").status == 0
    assert desk.file.read_bytes() == data.replace(b"return 2", b"return 3")


def test_a_snippet_comes_from_stdin(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PATCH.encode())))
    ran = desk.apply("--snippet", "-", *SPLICE)
    assert (ran.status, ran.out) == (0, DIFF)


def test_an_instruction_is_the_models_work(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = use(monkeypatch, Bench(f"{CHANGED}```").engine())
    ran = desk.apply("--instruction", "return three", "--write", "--json")
    assert (ran.status, ran.err) == (0, "")
    assert (ran.json["diff"], ran.json["verified"]) == (DIFF, True)
    assert 0 < ran.json["report"]["target_passes"] < ran.json["report"]["output_tokens"]
    assert desk.file.read_text("utf-8") == CHANGED
    assert configs == [EngineConfig(models.DEFAULT_MODEL)]


def test_options_reach_the_engine(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = use(monkeypatch, Bench(f"{CHANGED}```").engine())
    desk.apply(
        *("-i", "x", "--model", "m", "--max-new", "99", "--device", "cpu", "--dtype", "float32"),
        *("--profile", "fastapply", "--verify", "whenAmbiguous", "--no-speculation"),
        *("--temperature", "0.7", "--top-p", "0.9", "--top-k", "40", "--seed", "5"),
        *("--repetition-penalty", "1.1"),
    )
    (config,) = configs
    assert config == EngineConfig(
        model="m",
        device="cpu",
        dtype="float32",
        profile="fastapply",
        proposer="none",
        sampling=Sampling(0.7, 0.9, 40, 5, 1.1),
        max_new=99,
        verify=Verify.WHEN_AMBIGUOUS,
    )


# Refusals


def paths(desk: Desk) -> Mapping[str, str]:
    return {"FILE": str(desk.file), "FOLDER": str(desk.folder), "SNIPPET": str(desk.snippet)}


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        ("apply FOLDER/absent.py -i x", 2, "InvalidRequest"),
        ("apply FOLDER -i x", 2, "InvalidRequest"),
        ("apply /dev/null -i x", 2, "InvalidRequest"),
        ("apply FILE/below -i x", 2, "InvalidRequest"),
        ("apply FILE", 2, "InvalidRequest"),
        ("apply FILE --instruction=", 2, "InvalidRequest"),
        ("apply FILE --instruction=\t\n", 2, "InvalidRequest"),
        ("apply FILE -s FOLDER/absent.py", 2, "InvalidRequest"),
        ("apply FILE -s FOLDER", 2, "InvalidRequest"),
        ("apply FILE -i x --verify never", 2, "InvalidRequest"),
        ("apply FILE -i x --proposer auto+model", 2, "InvalidRequest"),
        ("apply FILE -i x --max-new 0", 2, "InvalidRequest"),
        ("apply FILE -i x --max-new=-1", 2, "InvalidRequest"),
        ("apply FILE -i x --temperature=-1", 2, "InvalidRequest"),
        ("apply FILE -i x --proposer lookup", 2, "InvalidRequest"),
        ("apply FILE -i x --profile morph", 2, "InvalidRequest"),
        ("apply FILE -i x --dtype int3", 2, "InvalidRequest"),
        ("apply FILE -i x --encoding klingon", 2, "UnsupportedEncoding"),
        ("apply FILE -i x --model no-such-model", 3, "ModelUnavailable"),
        ("apply FILE -i x --model FOLDER", 3, "ModelUnavailable"),
        ("apply FILE -i x --model FILE", 3, "ModelUnavailable"),
    ],
)
def test_bad_input_is_refused_with_a_code_and_changes_nothing(
    desk: Desk, arguments: str, status: int, code: str
) -> None:
    words = arguments.split(" ")
    for name, path in paths(desk).items():
        words = [word.replace(name, path) for word in words]
    desk.check_refused([*words, "--write"], status, code)


@pytest.mark.parametrize(
    "data", [b"\x80abc\n", b"a\0b\n", b"# coding: ascii\n\xe9\n", b"\xff\xfea\0\0\xd8"]
)
def test_bytes_that_would_not_survive_are_refused(desk: Desk, data: bytes) -> None:
    desk.file.write_bytes(data)
    desk.check_refused(["apply", str(desk.file), "-i", "x"], 2, "UnsupportedEncoding")


def test_an_undecodable_snippet_is_refused(desk: Desk) -> None:
    desk.snippet.write_bytes(b"\x80abc\n")
    arguments = ["apply", str(desk.file), "-s", str(desk.snippet), *SPLICE]
    desk.check_refused(arguments, 2, "UnsupportedEncoding")


def test_an_empty_snippet_is_no_edit(desk: Desk) -> None:
    desk.snippet.write_bytes(b" \n\n")
    arguments = ["apply", str(desk.file), "-s", str(desk.snippet), *SPLICE]
    desk.check_refused(arguments, 2, "InvalidRequest")


@pytest.mark.parametrize("write", [(), ("--write",)])
def test_a_result_that_the_encoding_lacks_is_refused_also_when_only_shown(
    desk: Desk, write: tuple[str, ...]
) -> None:
    desk.file.write_bytes(b"# coding: latin-1\n\n\ndef g():\n    return '\xe9'\n")
    desk.snippet.write_text("def g():\n    return '€'\n", "utf-8")
    arguments = ["apply", str(desk.file), "-s", str(desk.snippet), *SPLICE, *write]
    ran = desk.check_refused(arguments, 2, "UnsupportedEncoding")
    assert "U+20AC" in ran.json["error"]["message"]


def test_two_places_for_a_snippet_are_listed(desk: Desk) -> None:
    desk.file.write_text("x = 1\ny = 2\nx = 1\n")
    desk.snippet.write_text("<<<<<<< SEARCH\nx = 1\n=======\nx = 3\n>>>>>>> REPLACE\n")
    arguments = ["apply", str(desk.file), "-s", str(desk.snippet), *SPLICE, "--write"]
    ran = desk.check_refused(arguments, 2, "AmbiguousTarget")
    assert ran.json["error"]["details"]["lines"] == [1, 3]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["apply"],
        ["undo"],
        ["apply", "file.py", "--verify", "sometimes"],
        ["apply", "file.py", "--max-new", "many"],
        ["apply", "file.py", "--unknown"],
        ["replay", "fixtures", "--target", "gpt"],
    ],
)
def test_wrong_usage_exits_with_2_and_prints_nothing_on_stdout(
    desk: Desk, arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    out, err = desk.capture.readouterr()
    assert (caught.value.code, out) == (2, "")
    assert err.startswith("usage: apply-server")


# A file that can't be written


def test_a_read_only_file_is_left_alone(desk: Desk) -> None:
    desk.file.chmod(0o444)
    arguments = ["apply", str(desk.file), "-s", str(desk.snippet), *SPLICE]
    desk.check_refused([*arguments, "--write"], 2, "ReadOnly")
    assert desk.run(*arguments).status == 0


def test_a_full_disk_leaves_the_file_as_it_was(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    arguments = ["apply", str(desk.file), "-s", str(desk.snippet), *SPLICE, "--write"]
    desk.check_refused(arguments, 3, "WriteFailed")


def test_a_file_that_changed_meanwhile_keeps_its_new_content(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Acting(lambda: desk.file.write_text("someone else's\n") and None))
    ran = desk.apply("-i", "x", "--write", "--json")
    assert (ran.status, ran.json["error"]["code"]) == (2, "DocumentChanged")
    assert desk.file.read_text() == "someone else's\n"


def test_a_file_that_is_gone_meanwhile_is_not_made_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Acting(desk.file.unlink))
    ran = desk.apply("-i", "x", "--write")
    assert (ran.status, ran.err.split(":")[0]) == (2, "DocumentChanged")
    assert not desk.file.exists()


# Faults and interruptions


def test_an_interrupt_exits_with_130_and_writes_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    use(monkeypatch, Acting(interrupt))
    desk.check_refused(["apply", str(desk.file), "-i", "x", "--write"], 130, "Cancelled")


def test_a_fault_of_ours_is_no_refusal_and_never_no_change(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault() -> None:
        raise ZeroDivisionError("oops")

    use(monkeypatch, Acting(fault))
    ran = desk.apply("-i", "x", "--write", "--json")
    assert (ran.status, ran.json["error"]["code"]) == (3, "InternalError")
    assert "ZeroDivisionError" in ran.err
    assert desk.file.read_text("utf-8") == ORIGINAL


def test_an_answer_that_ends_early_writes_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Bench("def f():\n", ended=True).engine())
    desk.check_refused(["apply", str(desk.file), "-i", "x", "--write"], 2, "TruncatedOutput")


# A real model, of random weights


@pytest.mark.usefixtures("model_cache")
def test_a_models_babble_writes_nothing(desk: Desk, model: str) -> None:
    ran = desk.apply(
        *("-i", "x", "--model", model, "--dtype", "float32", "--device", "cpu"),
        *("--max-new", "70", "--write", "--json"),
    )
    assert (ran.status, ran.json["error"]["code"]) == (2, "TruncatedOutput")
    assert desk.file.read_text("utf-8") == ORIGINAL


@pytest.mark.usefixtures("model_cache")
def test_a_prompt_longer_than_the_context_is_refused(desk: Desk, model: str) -> None:
    desk.file.write_text("value = 1\n" * 60)
    ran = desk.apply("-i", "x", "--model", model, "--device", "cpu", "--write", "--json")
    assert (ran.status, ran.json["error"]["code"]) == (2, "DocumentTooLong")
    assert ran.json["error"]["details"]["limit"] == 600
    assert ran.json["error"]["details"]["needed"] > 600
    assert desk.file.read_text() == "value = 1\n" * 60


@pytest.mark.usefixtures("model_cache")
def test_too_small_a_limit_is_refused(desk: Desk, model: str) -> None:
    ran = desk.apply("-i", "x", "--model", model, "--device", "cpu", "--max-new", "9", "--json")
    assert (ran.status, ran.json["error"]["code"]) == (2, "DocumentTooLong")
    assert ran.json["error"]["details"]["limit"] == 9


@pytest.mark.usefixtures("model_cache")
@pytest.mark.parametrize("device", ["toaster", "cuda:99", ""])
def test_a_device_that_is_not_there_is_refused(desk: Desk, model: str, device: str) -> None:
    ran = desk.apply("-i", "x", "--model", model, f"--device={device}", "--json")
    assert (ran.status, ran.json["error"]["code"]) == (3, "ModelUnavailable")
    assert repr(device) in ran.json["error"]["message"]
    assert "Traceback" not in ran.err


# Replay and models


def test_a_replay_prints_a_table_and_a_summary_and_writes_the_report(desk: Desk) -> None:
    out = desk.folder / "report.json"
    ran = desk.run(
        *("replay", str(ROOT / "fixtures"), "--target", "scripted", "--tokenizer", "words"),
        *("--only", "python-timeout-default", "--baseline", "plain", "--json", str(out)),
    )
    assert ran.status == 0
    report = json.loads(out.read_text("utf-8"))
    assert [row["id"] for row in report["cases"]] == ["python-timeout-default"]
    assert report["summary"]["tokenizer"] == "words"
    assert (report["summary"]["exact_match"], report["summary"]["same_output"]) == (1, True)
    assert report["summary"]["plain_passes"] == report["summary"]["output_tokens"]
    assert "python-timeout-default" in ran.out
    assert json.loads(ran.out[ran.out.index("{") :]) == report["summary"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("FOLDER",),
        ("FOLDER/absent.jsonl",),
        ("FILE",),
        (str(ROOT / "fixtures"), "--only", "no such case"),
        (str(ROOT / "fixtures"), "--only", "python-timeout*", "--json", "FOLDER"),
        (str(ROOT / "fixtures"), "--tokenizer", "no-such-model"),
        (str(ROOT / "fixtures"), "--temperature", "0.5"),
    ],
)
def test_a_replay_that_cannot_be_run_is_refused(desk: Desk, arguments: tuple[str, ...]) -> None:
    words = list(arguments)
    for name, path in paths(desk).items():
        words = [word.replace(name, path) for word in words]
    before = desk.contents()
    named = () if "--tokenizer" in words else ("--tokenizer", "words")
    ran = desk.run("replay", *words, "--target", "scripted", *named)
    assert ran.status in (2, 3)
    assert ran.err.split(":")[0] in ("InvalidRequest", "ModelUnavailable")
    assert desk.contents() == before


@pytest.mark.usefixtures("model_cache")
def test_models_that_are_not_here_are_listed_as_absent_and_have_no_path(desk: Desk) -> None:
    ran = desk.run("models", "list")
    assert ran.status == 0
    rows = {line.split()[0]: line.split()[1] for line in ran.out.splitlines()}
    assert rows == {entry.name: "absent" for entry in models.REGISTRY}
    ran = desk.run("models", "path", models.DEFAULT_MODEL)
    assert (ran.status, ran.out, ran.err.split(":")[0]) == (3, "", "ModelUnavailable")


# Processes of their own


def process(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None, code: str = ""
) -> subprocess.Popen[bytes]:
    start = ["-c", code] if code else ["-m", "apply_server"]
    return subprocess.Popen(
        [sys.executable, *start, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Unbuffered output would hide what happens when a buffer is written at exit.
        env={**os.environ, "PYTHONUNBUFFERED": "", **(environment or {})},
        cwd=ROOT,
    )


def test_the_module_is_the_command_line() -> None:
    job = process(["--version"])
    out, err = job.communicate(timeout=60)
    assert (job.returncode, out.split()[0], err) == (0, b"apply-server", b"")


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
    ids=["C", "C without Python's help", "ascii", "latin-1"],
)
def test_a_terminal_that_lacks_characters_gets_escapes_and_programs_get_all(
    desk: Desk, environment: dict[str, str]
) -> None:
    desk.file.write_text(ORIGINAL.replace("日", "日🎉"), "utf-8")
    arguments = ["apply", str(desk.file), "-s", str(desk.snippet), *SPLICE]
    shown = process(arguments, environment)
    out, err = shown.communicate(timeout=60)
    assert (shown.returncode, err) == (0, b"")
    assert out.startswith(b"--- a/file.py\n")
    asked = process([*arguments, "--json", "--write"], environment)
    out, err = asked.communicate(timeout=60)
    assert (asked.returncode, err) == (0, b"")
    assert "-    return 2  # zwei → 日🎉\n" in json.loads(out)["diff"]
    assert desk.file.read_text("utf-8") == CHANGED


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux only")
def test_a_file_name_that_is_no_text_is_no_obstacle(desk: Desk) -> None:
    file = Path(os.fsdecode(os.fsencode(desk.folder) + b"/caf\xe9.py"))
    file.write_text(ORIGINAL, "utf-8")
    arguments = ["apply", str(file), "-s", str(desk.snippet), *SPLICE, "--write"]
    for more in (["--json"], []):
        file.write_text(ORIGINAL, "utf-8")
        job = process([*arguments, *more])
        out, err = job.communicate(timeout=60)
        assert (job.returncode, b"Traceback" in err) == (0, False)
        assert file.read_text("utf-8") == CHANGED
        assert not more or json.loads(out)["file"] == str(file)


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--write"]])
def test_a_reader_that_goes_away_is_no_fault(desk: Desk, arguments: list[str]) -> None:
    job = process(["apply", str(desk.file), "-s", str(desk.snippet), *SPLICE, *arguments])
    assert job.stdout is not None
    job.stdout.close()
    assert job.stderr is not None
    err = job.stderr.read()
    assert job.wait(timeout=60) == 0
    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err


SLOW_MODEL = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from apply_server.cli import main
from apply_server.engine import build
from tests.engine.support import Bench

bench = Bench("x = 1\\n" * 1000, kind="none")
def before_pass():
    print("decoding", file=sys.stderr, flush=True)
    time.sleep(0.05)
bench.target.before_pass = before_pass
build.build_engine = lambda config, report: bench.engine()
status = main(sys.argv[1:])
print("closed", bench.target.closed == bench.target.opened != [], file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_signal_during_decoding_exits_with_130_and_the_file_is_as_it_was(desk: Desk) -> None:
    before = desk.contents()
    job = process(["apply", str(desk.file), "-i", "x", "--write", "--json"], code=SLOW_MODEL)
    assert job.stderr is not None
    assert job.stderr.readline() == b"decoding\n"
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=60)
    assert job.returncode == 130
    assert json.loads(out)["error"]["code"] == "Cancelled"
    assert b"Cancelled: Interrupted. Nothing was written.\nclosed True\n" in err
    assert b"Traceback" not in err
    assert desk.contents() == before


def test_what_a_guard_blocks_is_shown_and_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, snippet = tmp_path / "mod.py", tmp_path / "snippet.py"
    file.write_text("a = 1\nb = 2\n")
    snippet.write_text("a = (\n# ... existing code ...\n")
    asked = ["apply", str(file), "--snippet", str(snippet), "--verify", "never", "--write"]
    assert main(asked) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "-a = 1\n+a = (\n" in shown.err
    assert "GuardBlocked: " in shown.err
    assert shown.err.endswith(" `--allow syntax` takes the result as it is.\n")
    assert file.read_text() == "a = 1\nb = 2\n"
    assert main([*asked, "--allow", "syntax"]) == 0
    assert file.read_text() == "a = (\nb = 2\n"
