"""From a name to a folder that loads: every way to name a model, and every way it can fail."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from apply_server.errors import ModelUnavailable
from apply_server.models import DEFAULT_MODEL, model_store, tokenizer_path
from apply_server.models.sources import OnBytes
from tests.models.support import (
    CONTENT,
    HUB_SOURCE,
    FakeHub,
    FakePackages,
    FakeRepositories,
    Recorder,
    entry,
    fake_convert,
    store,
    wheel_source,
)

TINY = entry(wheel_source())
REPOSITORY = {"config.json": b"{}", "model.safetensors": b"weights"}


def model_folder(path: Path) -> Path:
    path.mkdir()
    (path / "config.json").write_text("{}")
    (path / "model.safetensors").write_bytes(b"")
    return path


def unavailable(root: Path, name: str) -> str:
    with pytest.raises(ModelUnavailable) as caught:
        store(root / "cache", TINY).resolve(name, Recorder().report)
    return caught.value.message


# --- the registry's models ---


def test_a_known_name_is_fetched_converted_and_found_again_without_a_source(tmp_path: Path) -> None:
    packages, recorder = FakePackages(), Recorder()
    models = store(tmp_path, TINY, packages)
    files = models.resolve("tiny-model", recorder.report)
    assert files.entry == TINY
    assert files.profile == "chat"
    assert (files.folder / "model.safetensors").read_bytes() == CONTENT
    assert recorder.done("fetch")[-1] == len(CONTENT)
    assert recorder.done("verify")[-1] == len(CONTENT)
    last = recorder.progress[-1]
    assert (last.stage, last.done) == ("convert", last.total)
    offline = store(tmp_path, TINY, FakePackages(contents=()))
    assert offline.resolve("Tiny-Model", Recorder().report) == files
    assert len(packages.asked) == 3


def test_a_conversion_that_failed_is_repeated_without_a_download(tmp_path: Path) -> None:
    def interrupted(gguf: Path, folder: Path, on_bytes: OnBytes) -> Sequence[str]:
        (folder / "model.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store(tmp_path, TINY, convert=interrupted).resolve("tiny-model", Recorder().report)
    assert store(tmp_path, TINY).statuses()[0].state == "downloaded"
    packages = FakePackages()
    files = store(tmp_path, TINY, packages).resolve("tiny-model", Recorder().report)
    assert (files.folder / "model.safetensors").read_bytes() == CONTENT
    assert packages.asked == []


def test_the_converters_notes_reach_the_user(tmp_path: Path) -> None:
    def noting(gguf: Path, folder: Path, on_bytes: OnBytes) -> Sequence[str]:
        return ["mind this"]

    recorder = Recorder()
    store(tmp_path, TINY, convert=noting).resolve("tiny-model", recorder.report)
    assert recorder.notices[-1] == "mind this"


def test_statuses_follow_a_model_from_absent_to_ready(tmp_path: Path) -> None:
    def interrupt(requirement: str) -> None:
        if requirement.startswith("tiny-part2"):
            raise KeyboardInterrupt

    models = store(tmp_path, TINY)
    assert [(row.entry, row.state, row.folder) for row in models.statuses()] == [
        (TINY, "absent", None)
    ]
    with pytest.raises(KeyboardInterrupt):
        store(tmp_path, TINY, FakePackages(before=interrupt)).resolve(
            "tiny-model", Recorder().report
        )
    assert models.statuses()[0].state == "partial"
    folder = models.resolve("tiny-model", Recorder().report).folder
    assert (models.statuses()[0].state, models.statuses()[0].folder) == ("ready", folder)
    assert models.path("tiny-model") == folder
    assert models.tokenizer_path("tiny-model") == folder / "tokenizer.json"


def test_path_of_a_model_that_is_not_here_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="apply-server models pull tiny-model"):
        store(tmp_path, TINY).path("tiny-model")
    assert store(tmp_path, TINY).tokenizer_path("tiny-model") is None
    assert list(tmp_path.iterdir()) == []


# --- the disk ---


def test_too_little_room_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    packages = FakePackages()
    models = store(tmp_path, TINY, packages, free=lambda folder: 1000)
    with pytest.raises(ModelUnavailable, match=r"needs 268 MB more in .*tiny-model"):
        models.resolve("tiny-model", Recorder().report)
    assert packages.asked == []


def test_a_disk_that_fills_up_while_fetching_keeps_what_is_there(tmp_path: Path) -> None:
    def full(requirement: str) -> None:
        if requirement.startswith("tiny-part3"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(ModelUnavailable, match=r"more in .*Free some room"):
        store(tmp_path, TINY, FakePackages(before=full)).resolve("tiny-model", Recorder().report)
    packages = FakePackages()
    store(tmp_path, TINY, packages).resolve("tiny-model", Recorder().report)
    assert packages.asked == ["tiny-part3==1.0"]


def test_a_disk_that_fills_up_while_converting_leaves_no_half_model(tmp_path: Path) -> None:
    def full(gguf: Path, folder: Path, on_bytes: OnBytes) -> Sequence[str]:
        (folder / "model.safetensors").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    models = store(tmp_path, TINY, convert=full)
    with pytest.raises(ModelUnavailable, match="Free some room"):
        models.resolve("tiny-model", Recorder().report)
    left = sorted(path.name for path in (tmp_path / "tiny-model").iterdir())
    assert left == ["lock", "model.gguf"]


# --- two at once ---


def test_two_threads_fetch_once(tmp_path: Path) -> None:
    started, packages = threading.Barrier(2), FakePackages()
    found: list[Path] = []

    def run() -> None:
        started.wait(120)
        models = store(tmp_path, TINY, packages)
        found.append(models.resolve("tiny-model", Recorder().report).folder)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(set(found)) == 1
    assert len(found) == 2
    assert packages.asked == [f"tiny-part{i}==1.0" for i in (1, 2, 3)]


PROCESS = """
import sys
from pathlib import Path
from tests.models.support import FakePackages, Recorder, entry, store, wheel_source

root, log = map(Path, sys.argv[1:])
def note(requirement):
    with log.open("a") as out:
        out.write(requirement + chr(10))
models = store(root, entry(wheel_source()), FakePackages(before=note))
print("go", flush=True)
sys.stdin.readline()
models.resolve("tiny-model", Recorder().report)
"""


def test_two_processes_fetch_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path / "cache"), str(log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for _ in range(2)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "go\n"
    for child in children:
        child.communicate("\n", timeout=120)
        assert child.returncode == 0
    assert log.read_text().split() == [f"tiny-part{i}==1.0" for i in (1, 2, 3)]


# --- folders and files ---


def test_a_folder_is_used_where_it_is(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "mine")
    files = store(tmp_path / "cache", TINY).resolve(str(folder), Recorder().report)
    assert (files.folder, files.profile, files.entry) == (folder, "chat", None)
    assert not (tmp_path / "cache").exists()


def test_a_folder_that_is_no_model_says_what_is_missing(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds no config.json" in unavailable(tmp_path, str(empty))
    (empty / "config.json").write_text("{}")
    assert "holds no safetensors weights" in unavailable(tmp_path, str(empty))


def test_a_folder_with_a_gguf_file_points_to_it(tmp_path: Path) -> None:
    (tmp_path / "q4.gguf").write_bytes(CONTENT)
    assert f"Name the file itself: {tmp_path / 'q4.gguf'}" in unavailable(tmp_path, str(tmp_path))


def test_a_gguf_file_is_converted_once_until_it_changes(tmp_path: Path) -> None:
    converted: list[Path] = []

    def counting(gguf: Path, folder: Path, on_bytes: OnBytes) -> Sequence[str]:
        converted.append(gguf)
        return fake_convert(gguf, folder, on_bytes)

    file = tmp_path / "a model.gguf"
    file.write_bytes(CONTENT)
    models = store(tmp_path / "cache", TINY, convert=counting)
    assert models.tokenizer_path(str(file)) is None
    first = models.resolve(str(file), Recorder().report)
    assert models.resolve(str(file), Recorder().report) == first
    assert models.tokenizer_path(str(file)) == first.folder / "tokenizer.json"
    assert converted == [file]
    file.write_bytes(CONTENT + b"more")
    second = models.resolve(str(file), Recorder().report)
    assert second.folder != first.folder
    assert (second.folder / "model.safetensors").read_bytes() == CONTENT + b"more"


def test_a_file_that_is_no_gguf_is_refused_before_any_conversion(tmp_path: Path) -> None:
    other, wrong = tmp_path / "model.bin", tmp_path / "model.gguf"
    other.write_bytes(CONTENT)
    wrong.write_bytes(b"PK")
    assert "is not a model" in unavailable(tmp_path, str(other))
    assert "is not a complete GGUF file" in unavailable(tmp_path, str(wrong))


# --- the hub ---


def test_a_hub_id_is_fetched_once(tmp_path: Path) -> None:
    hub, recorder = FakeRepositories(tmp_path / "hub", REPOSITORY), Recorder()
    models = store(tmp_path, TINY, repositories=hub)
    files = models.resolve("owner/name", recorder.report)
    assert (files.folder / "model.safetensors").read_bytes() == b"weights"
    assert recorder.notices == ["Fetching owner/name (1 MB) from the Hugging Face hub."]
    assert recorder.done("fetch") == [9]
    assert models.resolve("owner/name", recorder.report) == files
    assert hub.fetched == ["owner/name"]


def test_a_hub_that_can_not_be_reached_names_the_remedies(tmp_path: Path) -> None:
    hub = FakeRepositories(tmp_path / "hub", reason="no answer within 8 s")
    with pytest.raises(ModelUnavailable) as caught:
        store(tmp_path, TINY, repositories=hub).resolve("owner/name", Recorder().report)
    assert caught.value.message == (
        "owner/name can't be had from the Hugging Face hub: no answer within 8 s. Check the id, "
        "the network and, for a gated model, `hf auth login`; or name a local folder, a .gguf file "
        "or one of tiny-model."
    )


def test_the_room_for_a_hub_id_is_checked_where_the_hub_keeps_it(tmp_path: Path) -> None:
    hub = FakeRepositories(tmp_path / "hub", REPOSITORY)
    models = store(tmp_path, TINY, repositories=hub, free=lambda folder: 3)
    with pytest.raises(ModelUnavailable, match=rf"{tmp_path / 'hub'}.*HF_HOME"):
        models.resolve("owner/name", Recorder().report)
    assert hub.fetched == []


def test_a_repository_without_safetensors_is_refused(tmp_path: Path) -> None:
    hub = FakeRepositories(tmp_path / "hub", {"config.json": b"{}"})
    with pytest.raises(ModelUnavailable, match="no safetensors"):
        store(tmp_path, TINY, repositories=hub).resolve("owner/name", Recorder().report)


# --- names that nothing has ---


@pytest.mark.parametrize("name", ["tiny-modle", "TINY_MODEL", "tiny"])
def test_a_near_miss_is_asked_about(tmp_path: Path, name: str) -> None:
    message = unavailable(tmp_path, name)
    assert f"There is no model {name!r}. Did you mean tiny-model?" in message
    assert "Known: tiny-model;" in message


@pytest.mark.parametrize(
    "name",
    ["zzz", "", "./no/such/folder", "./nope", "../nope", "~/nope", "owner/absent.gguf", "a/b/c"],
)
def test_other_names_list_what_is_known(tmp_path: Path, name: str) -> None:
    message = unavailable(tmp_path, name)
    assert message.startswith(f"There is no model {name!r}. Known: tiny-model;")


def test_an_unknown_name_touches_nothing(tmp_path: Path) -> None:
    hub = FakeHub()
    with pytest.raises(ModelUnavailable):
        store(tmp_path, entry(HUB_SOURCE), hub=hub).resolve("zzz", Recorder().report)
    assert hub.downloads == 0
    assert list(tmp_path.iterdir()) == []


# --- the package's own functions ---


def test_the_users_cache_is_the_one_the_variable_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APPLY_SERVER_CACHE", str(tmp_path))
    assert tokenizer_path() is None
    dense = model_store().cache.folder(DEFAULT_MODEL).dense
    dense.parent.mkdir(parents=True)
    model_folder(dense)
    (dense / "tokenizer.json").write_text("{}")
    assert tokenizer_path() == dense / "tokenizer.json"
    assert dense.is_relative_to(tmp_path)


def test_finding_a_tokenizer_imports_neither_torch_nor_transformers(tmp_path: Path) -> None:
    code = (
        "import sys; from apply_server.models import tokenizer_path; tokenizer_path(); "
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
