from __future__ import annotations

import errno
import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from apply_server import files
from apply_server.errors import (
    ApplyError,
    DocumentChanged,
    InvalidRequest,
    ReadOnly,
    UnsupportedEncoding,
    WriteFailed,
)
from apply_server.files import FileStamp, read_document, write_text

OLD = b"old text\r\n"
NEW = b"new text, and more of it\n"
STAMP = FileStamp.of(OLD)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "file.txt"
    file.write_bytes(OLD)
    return file


def fail_with(number: int, *, after: int = 0) -> object:
    """A function that raises OSError, but only after its first `after` calls."""
    calls: Iterator[int] = iter(range(after))

    def fail(*_: object, **__: object) -> None:
        if next(calls, None) is None:
            raise OSError(number, os.strerror(number))

    return fail


def unharmed(path: Path) -> bool:
    """The old content is there and nothing else lies beside it."""
    return path.read_bytes() == OLD and [*path.parent.iterdir()] == [path]


def test_a_file_is_read_with_its_stamp(path: Path) -> None:
    document, stamp = read_document(path)
    assert (document.text, stamp) == ("old text\r\n", STAMP)


def test_the_encoding_reaches_the_document(path: Path) -> None:
    path.write_bytes(b"\xe9")
    assert read_document(path, "latin-1")[0].text == "é"
    with pytest.raises(UnsupportedEncoding):
        read_document(path)


def test_what_is_no_readable_file_is_refused_in_words(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidRequest, match="There is no file"):
        read_document(path.with_name("missing"))
    with pytest.raises(InvalidRequest, match="is a folder"):
        read_document(path.parent)
    with pytest.raises(InvalidRequest, match="can't be read: Not a directory"):
        read_document(path / "below")
    os.mkfifo(path.with_name("pipe"))
    with pytest.raises(InvalidRequest, match="not a regular file"):
        read_document(path.with_name("pipe"))
    monkeypatch.setattr(Path, "read_bytes", fail_with(errno.EACCES))
    with pytest.raises(InvalidRequest, match="can't be read: Permission denied"):
        read_document(path)


def test_writing_replaces_the_file_in_one_step(path: Path) -> None:
    number = path.stat().st_ino
    assert write_text(path, STAMP, NEW) == FileStamp.of(NEW)
    assert path.read_bytes() == NEW
    assert path.stat().st_ino != number
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4750, 0o220 | 0o400])
def test_the_mode_is_kept(path: Path, mode: int) -> None:
    path.chmod(mode)
    write_text(path, STAMP, NEW)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_extended_attributes_are_kept(path: Path) -> None:
    if not hasattr(os, "setxattr"):
        pytest.skip("no extended attributes here")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    write_text(path, STAMP, NEW)
    assert os.getxattr(path, "user.note") == b"kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_is_kept(path: Path) -> None:
    os.chown(path, 1234, 2345)
    path.chmod(0o4755)
    write_text(path, STAMP, NEW)
    info = path.stat()
    assert (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)) == (1234, 2345, 0o4755)


def test_where_the_owner_cannot_be_kept_the_file_is_written_in_place(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = path.stat().st_ino
    monkeypatch.setattr(files, "_keep_attributes", fail_with(errno.EPERM))
    write_text(path, STAMP, NEW)
    assert (path.read_bytes(), path.stat().st_ino) == (NEW, number)
    assert [*path.parent.iterdir()] == [path]


def test_a_file_that_cannot_be_replaced_is_written_in_place(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = path.stat().st_ino
    monkeypatch.setattr(os, "replace", fail_with(errno.EBUSY))
    write_text(path, STAMP, NEW)
    assert (path.read_bytes(), path.stat().st_ino) == (NEW, number)
    assert [*path.parent.iterdir()] == [path]


def test_symlinks_are_written_through(path: Path) -> None:
    folder = path.parent / "real"
    folder.mkdir()
    target = path.rename(folder / "file.txt")
    (path.parent / "linked").symlink_to("real")
    chain = path.parent / "chain"
    chain.symlink_to("linked/hop")
    (folder / "hop").symlink_to("file.txt")  # relative to the folder it is in
    write_text(chain, STAMP, NEW)
    assert target.read_bytes() == NEW
    assert [link.is_symlink() for link in (chain, folder / "hop", path.parent / "linked")] == [
        True,
        True,
        True,
    ]
    assert sorted(entry.name for entry in folder.iterdir()) == ["file.txt", "hop"]


@pytest.mark.parametrize("data", [NEW, b"short", b""])
def test_hard_links_stay_one_file(path: Path, data: bytes) -> None:
    other = path.with_name("other")
    other.hardlink_to(path)
    number = path.stat().st_ino
    write_text(path, STAMP, data)
    assert (path.read_bytes(), other.read_bytes()) == (data, data)
    assert (path.stat().st_ino, path.stat().st_nlink) == (number, 2)
    assert sorted(path.parent.iterdir()) == [path, other]


def test_a_file_that_changed_is_left_alone(path: Path) -> None:
    path.write_bytes(b"someone else's")
    with pytest.raises(DocumentChanged, match="changed since it was read"):
        write_text(path, STAMP, NEW)
    assert path.read_bytes() == b"someone else's"
    path.unlink()
    with pytest.raises(DocumentChanged, match="is gone"):
        write_text(path, STAMP, NEW)
    assert [*path.parent.iterdir()] == []


def test_a_change_while_we_write_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = files._keep_metadata

    def someone_writes(target: Path, copy: Path) -> bool:
        target.write_bytes(b"someone else's")
        return keep(target, copy)

    monkeypatch.setattr(files, "_keep_metadata", someone_writes)
    with pytest.raises(DocumentChanged):
        write_text(path, STAMP, NEW)
    assert path.read_bytes() == b"someone else's"
    assert [*path.parent.iterdir()] == [path]


def test_a_read_only_file_is_refused_even_for_root(path: Path) -> None:
    path.chmod(0o444)
    with pytest.raises(ReadOnly, match="is read-only"):
        write_text(path, STAMP, NEW)
    assert unharmed(path)


@pytest.mark.parametrize(
    ("function", "number", "kind"),
    [
        ("fsync", errno.ENOSPC, WriteFailed),
        ("fsync", errno.EROFS, ReadOnly),
        ("replace", errno.ENOSPC, WriteFailed),
        ("replace", errno.EIO, WriteFailed),
    ],
)
def test_a_failed_write_harms_nothing(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    number: int,
    kind: type[ApplyError],
) -> None:
    monkeypatch.setattr(os, function, fail_with(number))
    with pytest.raises(kind, match=r"Nothing was changed\."):
        write_text(path, STAMP, NEW)
    assert unharmed(path)


def test_a_full_disk_harms_neither_a_file_nor_a_linked_one(path: Path, tmp_path: Path) -> None:
    data = NEW * 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(data) // 2, hard))
    try:
        with pytest.raises(WriteFailed):
            write_text(path, STAMP, data)
        assert unharmed(path)
        path.with_name("other").hardlink_to(path)
        with pytest.raises(WriteFailed):
            write_text(path, STAMP, data)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    path.with_name("other").unlink()
    assert unharmed(path)


def test_a_linked_file_is_restored_after_a_failure(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = path.with_name("other")
    other.hardlink_to(path)
    verify = files._verify

    def reads_back_wrong(place: Path, data: bytes) -> None:
        if data == NEW:
            raise OSError(errno.EIO, "reads back wrong")
        verify(place, data)

    monkeypatch.setattr(files, "_verify", reads_back_wrong)
    with pytest.raises(WriteFailed, match="reads back wrong"):
        write_text(path, STAMP, NEW)
    assert (path.read_bytes(), other.read_bytes()) == (OLD, OLD)
    assert sorted(path.parent.iterdir()) == [path, other]


def test_the_backup_stays_where_restoring_fails_too(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.with_name("other").hardlink_to(path)
    monkeypatch.setattr(os, "fsync", fail_with(errno.EIO, after=1))
    with pytest.raises(WriteFailed, match="copy it back") as caught:
        write_text(path, STAMP, NEW)
    assert Path(str(caught.value.details["backup"])).read_bytes() == OLD


@pytest.mark.parametrize("linked", [False, True])
def test_an_interrupt_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    other = path.with_name("other")
    if linked:
        other.hardlink_to(path)
    verify = files._verify

    def interrupted(place: Path, data: bytes) -> None:
        if data == NEW:
            raise KeyboardInterrupt
        verify(place, data)

    monkeypatch.setattr(files, "_verify", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, STAMP, NEW)
    other.unlink(missing_ok=True)
    assert unharmed(path)
