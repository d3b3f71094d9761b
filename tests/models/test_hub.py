"""The hub's real client against a small hub on this machine: hash, resume, bounded waiting."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from apply_server.models.hub import HuggingFaceHub, within
from apply_server.models.repositories import HubRepositories
from apply_server.models.sources import HubFile, SourceUnavailable
from tests.models.support import CONTENT, HUB_SOURCE, SHA256

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = {"config.json": b"{}", "model.safetensors": b"weights", "pytorch_model.bin": b"code"}


@dataclass
class Answers:
    """What the hub does: cut a file off after so many bytes, ignore ranges, or refuse."""

    cut_after: int | None = None
    ranges: bool = True
    status: int = 200
    asked: list[str] = field(default_factory=list)


@contextmanager
def serving(answers: Answers, files: dict[str, bytes]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Keep the tests' output clean."""

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            answers.asked.append(f"{self.path} {self.headers.get('Range', '')}".strip())
            if answers.status != 200:
                self.reply(answers.status, b"", {})
            elif self.path.startswith("/api/models/owner/tiny/tree/"):
                self.reply(200, json.dumps([self.tree(name) for name in files]).encode(), {})
            elif self.path.startswith("/api/models/"):
                self.reply(200, json.dumps(self.info()).encode(), {})
            else:
                self.file(files[self.path.rsplit("/", 1)[1]])

        def tree(self, name: str) -> dict[str, object]:
            return {"type": "file", "path": name, "size": len(files[name]), "oid": "a" * 40}

        def info(self) -> dict[str, object]:
            lfs = {"size": len(CONTENT), "sha256": SHA256, "pointerSize": 1}
            siblings = [
                {"rfilename": name, "size": len(content), "lfs": lfs}
                for name, content in files.items()
            ]
            return {"id": "owner/tiny", "sha": COMMIT, "siblings": siblings}

        def file(self, content: bytes) -> None:
            start = 0
            if answers.ranges and (wanted := self.headers.get("Range")):
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            headers = {"ETag": f'"{sha256(content).hexdigest()}"', "X-Repo-Commit": COMMIT}
            if start:
                headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            self.reply(206 if start else 200, content[start:], headers)

        def reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            self.wfile.write(body[: answers.cut_after])
            if answers.cut_after is not None and len(body) > answers.cut_after:
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def hub(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> Iterator[HuggingFaceHub]:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(answers, {HUB_SOURCE.filename: CONTENT}) as endpoint:
        yield HuggingFaceHub(endpoint, answer_s=120.0, silence_s=120.0, retry_s=0.0)


def silent(count: int) -> None:
    """Nobody listens."""


FILE = HubFile(COMMIT, len(CONTENT), SHA256)


def test_the_hash_is_the_one_the_api_gives(hub: HuggingFaceHub, answers: Answers) -> None:
    assert hub.describe(HUB_SOURCE) == FILE
    assert answers.asked == ["/api/models/owner/tiny?blobs=true"]


def test_a_file_the_repository_lacks_is_named(hub: HuggingFaceHub) -> None:
    with pytest.raises(SourceUnavailable, match=r"the repository has no other\.gguf"):
        hub.describe(type(HUB_SOURCE)("owner/tiny", "other.gguf"))


def test_a_file_is_fetched_from_the_commit_that_was_described(
    hub: HuggingFaceHub, answers: Answers, tmp_path: Path
) -> None:
    seen: list[int] = []
    assert hub.download(HUB_SOURCE, FILE, tmp_path, seen.append).read_bytes() == CONTENT
    assert answers.asked == [f"/owner/tiny/resolve/{COMMIT}/tiny.gguf bytes=0-"]
    assert seen[-1] == len(CONTENT)


def test_a_download_goes_on_where_an_earlier_run_stopped(
    hub: HuggingFaceHub, answers: Answers, tmp_path: Path
) -> None:
    (tmp_path / f"{SHA256}.gguf").write_bytes(CONTENT[:1000])
    assert hub.download(HUB_SOURCE, FILE, tmp_path, silent).read_bytes() == CONTENT
    assert answers.asked == [f"/owner/tiny/resolve/{COMMIT}/tiny.gguf bytes=1000-"]


def test_an_interrupt_keeps_what_is_there(hub: HuggingFaceHub, tmp_path: Path) -> None:
    def interrupt(count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hub.download(HUB_SOURCE, FILE, tmp_path, interrupt)
    kept = (tmp_path / f"{SHA256}.gguf").read_bytes()
    assert kept
    assert CONTENT.startswith(kept)


def test_a_connection_that_breaks_is_taken_up_again(
    hub: HuggingFaceHub, answers: Answers, tmp_path: Path
) -> None:
    answers.cut_after = 4000
    assert hub.download(HUB_SOURCE, FILE, tmp_path, silent).read_bytes() == CONTENT
    assert [request.split()[-1] for request in answers.asked] == [
        "bytes=0-",
        "bytes=4000-",
        "bytes=8000-",
    ]


def test_a_server_without_ranges_sends_the_file_from_its_start(
    hub: HuggingFaceHub, answers: Answers, tmp_path: Path
) -> None:
    answers.ranges = False
    (tmp_path / f"{SHA256}.gguf").write_bytes(b"x" * 1000)
    assert hub.download(HUB_SOURCE, FILE, tmp_path, silent).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_refusal_is_given_up_after_a_few_attempts(
    hub: HuggingFaceHub, answers: Answers, tmp_path: Path, status: int
) -> None:
    answers.status = status
    with pytest.raises(SourceUnavailable, match=str(status)):
        hub.download(HUB_SOURCE, FILE, tmp_path, silent)
    assert len(answers.asked) == 3


def test_a_connection_that_brings_nothing_is_given_up(
    hub: HuggingFaceHub, answers: Answers, tmp_path: Path
) -> None:
    answers.cut_after = 0
    with pytest.raises(SourceUnavailable):
        hub.download(HUB_SOURCE, FILE, tmp_path, silent)
    assert len(answers.asked) == 3


def test_no_server_is_a_source_that_is_unavailable(hub: HuggingFaceHub) -> None:
    nobody = HuggingFaceHub("http://127.0.0.1:9", answer_s=120.0)
    with pytest.raises(SourceUnavailable, match="refused"):
        nobody.describe(HUB_SOURCE)


def test_a_call_that_never_answers_is_left_behind() -> None:
    """As name resolution does behind some firewalls; no timeout of the client covers it."""
    release = threading.Event()
    try:
        with pytest.raises(SourceUnavailable, match=r"no answer within 0\.05 s"):
            within(0.05, lambda: release.wait(60))
        assert not release.is_set()
    finally:
        release.set()


@pytest.mark.parametrize("raised", [ValueError("bad\nmore"), ConnectionError("bad.")])
def test_what_a_call_raises_is_the_reason_in_one_line(raised: Exception) -> None:
    def fail() -> None:
        raise raised

    with pytest.raises(SourceUnavailable, match=r"^bad$"):
        within(120, fail)


@pytest.fixture
def repositories(
    answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HubRepositories]:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    for name, value in {
        "HF_HUB_CACHE": str(tmp_path / "hub"),
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    with serving(answers, REPOSITORY) as endpoint:
        yield HubRepositories(endpoint, answer_s=120.0, silence_s=300.0)


def test_a_repository_is_fetched_without_pickles(repositories: HubRepositories) -> None:
    assert repositories.cached("owner/tiny") is None
    assert repositories.size("owner/tiny") == len(b"{}") + len(b"weights")
    folder = repositories.fetch("owner/tiny", silent)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    assert (folder / "model.safetensors").read_bytes() == b"weights"


def test_a_cached_repository_needs_no_hub(repositories: HubRepositories, answers: Answers) -> None:
    folder = repositories.fetch("owner/tiny", silent)
    answers.asked.clear()
    assert repositories.cached("owner/tiny") == folder
    assert answers.asked == []


def test_a_hub_that_refuses_gives_its_reason(
    repositories: HubRepositories, answers: Answers
) -> None:
    answers.status = 404
    refused: list[Callable[[], object]] = [
        lambda: repositories.size("owner/tiny"),
        lambda: repositories.fetch("owner/tiny", silent),
    ]
    for call in refused:
        with pytest.raises(SourceUnavailable):
            call()


def test_a_name_that_the_hub_would_never_have_is_no_crash(repositories: HubRepositories) -> None:
    assert repositories.cached("owner/a--b..") is None
    with pytest.raises(SourceUnavailable, match="owner/a--b"):
        repositories.size("owner/a--b..")
