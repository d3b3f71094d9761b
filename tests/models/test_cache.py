"""Where models are kept, and that a folder under its final name is always complete."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from apply_server.errors import ModelUnavailable
from apply_server.models.cache import ModelFolder, cache_root, free_bytes
from apply_server.models.progress import gigabytes
from tests.models.support import Recorder


def test_the_variable_moves_the_cache(tmp_path: Path) -> None:
    assert cache_root({"APPLY_SERVER_CACHE": str(tmp_path)}) == tmp_path / "models"
    default = cache_root({})
    assert default.parts[-2:] == ("apply-server", "models") or "apply-server" in default.parts


def test_too_little_room_says_how_much_and_where(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path, free=lambda path: 1_000_000)
    with pytest.raises(ModelUnavailable) as caught, folder.room.for_bytes(2_500_000_000):
        pytest.fail("the block must not run")
    assert "2.50 GB" in caught.value.message
    assert "1 MB are free" in caught.value.message
    assert str(tmp_path) in caught.value.message
    assert "APPLY_SERVER_CACHE" in caught.value.message
    assert caught.value.details["needed_bytes"] == 2_500_000_000


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_is_the_same_error(tmp_path: Path, number: int) -> None:
    folder = ModelFolder(tmp_path, free=lambda path: 10**9)
    with pytest.raises(ModelUnavailable, match=r"needs 1 MB more"), folder.room.for_bytes(10):
        raise OSError(number, "full")


def test_other_disk_errors_are_not_called_a_full_disk(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path, free=lambda path: 10**9)
    with pytest.raises(OSError, match="broken"), folder.room.for_bytes(10):
        raise OSError(errno.EIO, "broken")


def test_free_room_is_known_for_a_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "a" / "b") > 0


def test_a_conversion_that_fails_leaves_nothing(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path)

    def interrupted() -> None:
        with folder.new_dense() as work:
            (work / "half").write_text("")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_conversion_replaces_older_ones_and_what_a_killed_one_left(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path)
    (tmp_path / "dense-v0").mkdir()
    (tmp_path / f"{folder.dense.name}.killed").mkdir()
    with folder.new_dense() as work:
        (work / "config.json").write_text("{}")
        assert not folder.dense.exists()
    assert [path.name for path in tmp_path.iterdir()] == [folder.dense.name]
    assert (folder.dense / "config.json").exists()


def test_a_second_holder_of_the_lock_waits_and_says_so(tmp_path: Path) -> None:
    folder, recorder = ModelFolder(tmp_path / "m"), Recorder()
    order, waiting = [], threading.Event()

    def notice(message: str) -> None:
        recorder.notices.append(message)
        waiting.set()

    def second() -> None:
        report = type(recorder.report)(notice=notice)
        with folder.locked(report):
            order.append("second")

    thread = threading.Thread(target=second)
    with folder.locked(recorder.report):
        thread.start()
        assert waiting.wait(120)
        order.append("first")
    thread.join(120)
    assert order == ["first", "second"]
    assert recorder.notices == ["Another process is preparing m; waiting for it."]


def test_a_cache_that_can_not_be_made_is_a_coded_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = ModelFolder(tmp_path / "file" / "m")
    with (
        pytest.raises(ModelUnavailable, match="APPLY_SERVER_CACHE"),
        folder.locked(Recorder().report),
    ):
        pytest.fail("the block must not run")


@pytest.mark.parametrize(
    ("count", "text"), [(1, "1 MB"), (93_400_000, "93 MB"), (1_117_320_768, "1.12 GB")]
)
def test_sizes_read_well(count: int, text: str) -> None:
    assert gigabytes(count) == text
