"""One file of a Hugging Face hub repository, resumable.

This module must not know what is done with the file, or what to try when the hub fails.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import huggingface_hub  # its parts load when they are first used

from apply_server.models.cache import DISK_FULL
from apply_server.models.registry import HubSource
from apply_server.models.sources import HubFile, OnBytes, SourceUnavailable

T = TypeVar("T")


def within(seconds: float, call: Callable[[], T]) -> T:
    """The result of `call`, or SourceUnavailable after `seconds`.

    Timeouts of an HTTP client don't cover name resolution, which can hang for minutes; the thread
    that hangs is left behind.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="hub-call").start()
    try:
        return future.result(seconds)
    except TimeoutError as error:
        raise SourceUnavailable(f"no answer within {seconds:g} s") from error
    except Exception as error:
        raise SourceUnavailable(_first_line(error)) from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


@dataclass(frozen=True, slots=True)
class HuggingFaceHub:
    """The hub at `endpoint` (the client's default if None: `$HF_ENDPOINT`, mirrors and all).

    `answer_s` bounds a question to its API; `silence_s` is the longest pause of a download, and
    `attempts` how often in a row one may fail without bringing a byte.
    """

    endpoint: str | None = None
    answer_s: float = 8.0
    silence_s: float = 15.0
    attempts: int = 3
    retry_s: float = 1.0

    def describe(self, source: HubSource) -> HubFile:
        """Size, hash and commit of a file, as the hub's API gives them."""
        api = huggingface_hub.HfApi(endpoint=self.endpoint)  # its import isn't the hub's delay
        info = within(
            self.answer_s,
            lambda: api.model_info(source.repo, files_metadata=True, timeout=self.answer_s),
        )
        for file in info.siblings or ():
            if file.rfilename == source.filename and file.lfs is not None and info.sha:
                return HubFile(info.sha, file.lfs.size, file.lfs.sha256)
        raise SourceUnavailable(f"the repository has no {source.filename}")

    def download(self, source: HubSource, file: HubFile, folder: Path, on_bytes: OnBytes) -> Path:
        """Fetch the file into `folder`; bytes that an earlier call brought are kept.

        The hub's own client starts an interrupted file again from nothing, hence the ranges here.
        """
        folder.mkdir(parents=True, exist_ok=True)
        # Named after the content: bytes of another version of the file must not be continued.
        target = folder / f"{file.sha256}.gguf"
        target.touch()
        failures = 0
        while (before := target.stat().st_size) < file.size:
            reason = self._attempt(source, file.revision, target, on_bytes)
            failures = 0 if target.stat().st_size > before else failures + 1
            if failures >= self.attempts:
                raise SourceUnavailable(reason)
            time.sleep(self.retry_s if failures else 0)
        return target

    def _attempt(self, source: HubSource, revision: str, target: Path, on_bytes: OnBytes) -> str:
        """Add to `target` what one answer brings; returns why that may not be all of it."""
        try:
            self._stream(source, revision, target, on_bytes)
        except Exception as error:
            if isinstance(error, OSError) and error.errno in DISK_FULL:
                raise
            return _first_line(error)
        return "the answer was shorter than the file"

    def _stream(self, source: HubSource, revision: str, target: Path, on_bytes: OnBytes) -> None:
        url = huggingface_hub.hf_hub_url(
            source.repo, source.filename, revision=revision, endpoint=self.endpoint
        )
        # A compressed answer would count other bytes than the range does.
        headers = {"Range": f"bytes={target.stat().st_size}-", "Accept-Encoding": "identity"}
        if token := huggingface_hub.get_token():
            headers["Authorization"] = f"Bearer {token}"
        session = huggingface_hub.get_session()
        with session.stream("GET", url, headers=headers, timeout=self.silence_s) as answer:
            answer.raise_for_status()
            with target.open("ab" if answer.status_code == 206 else "wb") as out:
                # As they come: larger blocks would be lost where the connection breaks.
                for block in answer.iter_bytes():
                    out.write(block)
                    on_bytes(out.tell())
