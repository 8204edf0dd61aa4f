"""What a journal needs of the operating system: durable writes and a lock, also where POSIX calls are missing.

Linux has all of them. macOS has no `fdatasync`, and flushes the drive's cache with `F_FULLFSYNC` only; Windows has
neither `fcntl` nor durable folders, and locks with `msvcrt`.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from neuralucb.runtime.errors import StorageError

__all__ = [
    "FolderLock",
    "Step",
    "make_folder",
    "open_for_append",
    "storage_errors",
    "sync_data",
    "sync_folder",
    "write_all",
    "write_private",
]

Step = Callable[[str], None]
"""Called with the name of every step of writing, before it; what it raises stops the writing there. For tests."""


def _import_if_present(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


fcntl: Any = _import_if_present("fcntl")
msvcrt: Any = _import_if_present("msvcrt")
UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.ENOTTY)
"""What a file system answers that has no `F_FULLFSYNC`; any other error is a failed sync."""
FILE_MODE, FOLDER_MODE = 0o600, 0o700
"""Contexts and rewards may be personal: nobody but the owner reads them."""
BINARY = getattr(os, "O_BINARY", 0)
"""Windows translates the ends of lines in files that are opened without it."""


class FolderLock:
    """Lets one bandit of one process write to a folder.

    The lock ends with the process, except where neither `fcntl` nor `msvcrt` exists: then a file that a killed process
    leaves behind must be deleted by hand.
    """

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self._file, self._owner = folder / "lock", os.getpid()
        exclusive = os.O_EXCL if fcntl is None and msvcrt is None else 0
        in_use = f"{folder} is in use by another process or bandit; close that first"
        try:
            handle = os.open(self._file, os.O_RDWR | os.O_CREAT | exclusive | BINARY, FILE_MODE)
        except FileExistsError:
            raise StorageError(f"{in_use}, or delete {self._file} if its process is gone.") from None
        except OSError as problem:
            raise StorageError(f"{folder} could not be written: {problem.strerror or problem}.") from problem
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            elif msvcrt is not None:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            os.close(handle)
            raise StorageError(f"{in_use}.") from None
        self._handle: int | None = handle

    def release(self) -> None:
        """Let another process or bandit write. Releasing twice does no harm."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        is_owner = os.getpid() == self._owner  # a fork must not take the lock from its parent
        if is_owner and fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_UN)  # closing alone would leave it to a fork that lives on
        elif is_owner and msvcrt is not None:
            msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
        os.close(handle)
        if is_owner and fcntl is None and msvcrt is None:
            self._file.unlink(missing_ok=True)


@contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Turns errors of the disk into a StorageError that names the folder."""
    try:
        yield
    except OSError as problem:
        raise StorageError(f"{folder} could not be read or written: {problem.strerror or problem}.") from problem


def make_folder(folder: Path) -> None:
    """Make a folder durably: the names of new folders are synced in their parents."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        for each in missing:
            sync_folder(each.parent)
    except OSError as problem:
        raise StorageError(f"{folder} cannot be a folder: {problem.strerror or problem}.") from None


def open_for_append(path: Path) -> int:
    """A handle on a new file."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | BINARY, FILE_MODE)


def write_private(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a new file that only its owner may read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, FILE_MODE)
    try:
        for piece in pieces:
            write_all(handle, piece)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes | memoryview) -> None:
    """Write everything: the system may write less than it is given."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def sync_data(handle: int) -> None:
    """Force what was written to a file onto the disk."""
    flush_drive = getattr(fcntl, "F_FULLFSYNC", None)
    if flush_drive is not None:
        try:
            fcntl.fcntl(handle, flush_drive)
            return
        except OSError as problem:
            if problem.errno not in UNSUPPORTED:
                raise
    if hasattr(os, "fdatasync"):
        os.fdatasync(handle)
    else:
        os.fsync(handle)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; nothing on Windows, which cannot open folders."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
