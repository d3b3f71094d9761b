"""Reading a document from a file, and writing it back without harming the file.

Symlinks are written through; mode, owner, extended attributes and hard links are kept. This module
must not know what is in a document or why it changed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from apply_server.document import Document
from apply_server.errors import ApplyError, DocumentChanged, InvalidRequest, ReadOnly, WriteFailed

_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
# A sticky folder, a file that is a mount point of its own, a file that another program holds open.
_IRREPLACEABLE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV})
_WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What a file held when it was read: the SHA-256 of its bytes, in hex."""

    sha256: str

    @classmethod
    def of(cls, data: bytes) -> FileStamp:
        """The stamp of a file with this content."""
        return cls(hashlib.sha256(data).hexdigest())


def read_document(path: Path, encoding: str | None = None) -> tuple[Document, FileStamp]:
    """The file as a document, and the stamp that writing it needs.

    `encoding`: see Document.from_bytes. Raises InvalidRequest if there is no such regular file or
    it can't be read, UnsupportedEncoding if its bytes wouldn't survive.
    """
    try:
        data = _read_regular(path)
    except FileNotFoundError:
        raise InvalidRequest(f"There is no file {path}. Check the path.") from None
    except OSError as error:
        raise InvalidRequest(
            f"{path} can't be read: {error.strerror or error}. Check its path and permissions."
        ) from error
    return Document.from_bytes(data, encoding), FileStamp.of(data)


def write_text(path: Path, stamp: FileStamp, data: bytes) -> FileStamp:
    """Make `data` the file's content; the stamp of what it holds then.

    The file is replaced in one step by a new one of the same mode, owner and attributes. Where
    that would lose something (other hard links, another's file, a closed folder) it is rewritten
    in place, with a backup beside it until it has been verified. Raises DocumentChanged if the
    file isn't what `stamp` says, ReadOnly if it may not be written, WriteFailed for anything else;
    after each of them the file has its old content.
    """
    try:
        target = Path(os.path.realpath(path, strict=True))
        old = _unchanged(target, stamp)
        check_writable(target)
        if not (_replaceable(target) and _replace(target, stamp, data)):
            _rewrite_in_place(target, old, data)
    except (FileNotFoundError, NotADirectoryError):
        raise DocumentChanged(f"{path} is gone since it was read. Nothing was changed.") from None
    except OSError as error:
        raise _refusal(path, error) from error
    return FileStamp.of(data)


def _read_regular(path: Path) -> bytes:
    # Asked first: opening a pipe would wait for its writer.
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise InvalidRequest(f"{path} is a folder. Name a file in it.")
    if not stat.S_ISREG(mode):
        raise InvalidRequest(f"{path} is not a regular file. Name a text file.")
    return path.read_bytes()


def _unchanged(target: Path, stamp: FileStamp) -> bytes:
    data = target.read_bytes()
    if FileStamp.of(data) != stamp:
        raise DocumentChanged(
            f"{target} changed since it was read. Nothing was changed; run the edit again."
        )
    return data


def check_writable(target: Path) -> None:
    """Raise ReadOnly for a file that may not be written."""
    # The bits as well: they hold nobody back who is root, but they say what the owner wants.
    if not target.stat().st_mode & _WRITE_BITS or not os.access(target, os.W_OK):
        raise ReadOnly(f"{target} is read-only. Make it writable, then run the edit again.")


def _replaceable(target: Path) -> bool:
    """Whether a new file could take this one's place: one name, in a folder open to us."""
    return target.stat().st_nlink == 1 and os.access(target.parent, os.W_OK)


def _replace(target: Path, stamp: FileStamp, data: bytes) -> bool:
    """Put a verified copy in the file's place; False if that can't be had without a loss."""
    copy = _temporary(target.parent, target.name, data)
    try:
        if not _keep_metadata(target, copy):
            return False
        _unchanged(target, stamp)
        os.replace(copy, target)
    except OSError as error:
        if error.errno not in _IRREPLACEABLE:
            raise
        return False
    finally:
        copy.unlink(missing_ok=True)
    _sync_folder(target.parent)
    return True


def _temporary(folder: Path | None, name: str, data: bytes) -> Path:
    """A new file that holds `data`, on disk and read back, or none at all.

    None as the folder is the system's for temporary files.
    """
    descriptor, temporary = tempfile.mkstemp(".tmp", f".{name[:80]}.", folder)
    path = Path(temporary)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _verify(path, data)
    except BaseException:
        path.unlink()
        raise
    return path


def _keep_metadata(target: Path, copy: Path) -> bool:
    """Give the copy the file's owner, attributes and mode; False where we may not."""
    info = target.stat()
    try:
        if sys.platform != "win32":
            made = copy.stat()
            if (made.st_uid, made.st_gid) != (info.st_uid, info.st_gid):
                os.chown(copy, info.st_uid, info.st_gid)
        _keep_attributes(target, copy)
        # Last, as a change of owner clears the set-ID bits.
        copy.chmod(stat.S_IMODE(info.st_mode))
    except OSError:
        return False
    return True


def _keep_attributes(target: Path, copy: Path) -> None:
    """Extended attributes, access control lists among them."""
    wanted, given = _attributes(target), _attributes(copy)
    if sys.platform == "linux":
        for name, value in wanted.items() - given.items():
            os.setxattr(copy, name, value)
        for name in given.keys() - wanted.keys():
            os.removexattr(copy, name)


def _attributes(path: Path) -> dict[str, bytes]:
    if sys.platform != "linux":
        return {}
    try:
        return {name: os.getxattr(path, name) for name in os.listxattr(path)}
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return {}


def _rewrite_in_place(target: Path, old: bytes, data: bytes) -> None:
    folder = target.parent if os.access(target.parent, os.W_OK) else None
    backup = _temporary(folder, target.name, old)
    try:
        _overwrite(target, data)
    except BaseException:
        _restore(target, old, backup)
        raise
    backup.unlink()


def _restore(target: Path, old: bytes, backup: Path) -> None:
    try:
        _overwrite(target, old)
    except OSError as error:
        raise WriteFailed(
            f"{target} could be neither written nor restored ({error.strerror}). "
            f"Its old content is in {backup}: copy it back.",
            {"backup": str(backup)},
        ) from error
    backup.unlink()


def _overwrite(target: Path, data: bytes) -> None:
    """Write over the content of the same file, and read it back."""
    with target.open("r+b") as file:
        file.write(data)
        file.flush()
        # Only now: until the new bytes are in, the old ones' blocks must stay ours to restore to.
        file.truncate()
        os.fsync(file.fileno())
    _verify(target, data)


def _verify(path: Path, data: bytes) -> None:
    if path.read_bytes() != data:
        raise OSError(errno.EIO, "it reads back differently from what was written")


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut; Windows has no such call for folders."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _refusal(path: Path, error: OSError) -> ApplyError:
    reason = error.strerror or str(error)
    if error.errno in _REFUSED:
        return ReadOnly(f"{path} may not be written: {reason}. Nothing was changed.")
    return WriteFailed(f"{path} could not be written: {reason}. Nothing was changed.")
