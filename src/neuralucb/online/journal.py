"""An append-only journal: every record has a number, a length and checksums; one process writes.

A file's end may be torn by a crash: a record that is not whole is cut off and counted. Damage before that is an error.
"""

import fcntl
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from neuralucb.online.storage import Step, StorageError, sync_folder

__all__ = ["Journal", "Sync", "read_segment", "segments"]

Sync: TypeAlias = Literal["each", "interval", "none"]
SYNCS = ("each", "interval", "none")

MAGIC = b"neuralucb journal 1\n"
HEADER = struct.Struct("<QII")
"""number of the record, length and CRC of its payload; followed by the CRC of these"""
CHECK = struct.Struct("<I")
FRAME = HEADER.size + CHECK.size
LARGEST = 1 << 31

INTERVAL = 0.05
"""Seconds between two syncs with `interval`: what a power cut may cost."""


class Journal:
    """Appends records to the newest segment of a folder. A record is written before `append` returns.

    sync  `each`: on the disk before `append` returns; `interval`: within 50 ms; `none`: when the system likes.
    A kill of the process loses nothing in any of them. After a write or a sync that failed nothing is taken any more.
    """

    def __init__(self, folder: Path, sync: Sync, step: Step) -> None:
        if sync not in SYNCS:
            raise ValueError(f"sync must be one of {', '.join(SYNCS)}, got {sync!r}.")
        self.folder, self._sync, self._step = folder, sync, step
        self._lock = _lock(folder)
        self._handle: int | None = None
        self._failure: str | None = None
        self._unsynced = False
        self._number = 0
        self.segment = 0
        self._closing = threading.Event()
        self._syncer: threading.Thread | None = None

    def begin(self, segment: int, number: int) -> None:
        """Write to a new segment, whose first record has this number."""
        path = self.folder / _name(segment)
        self._step("journal segment")
        handle = self._guarded(lambda: os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644))
        assert handle is not None
        self._guarded(lambda: _write(handle, MAGIC))
        self._guarded(lambda: os.fdatasync(handle))
        self._guarded(lambda: sync_folder(self.folder))
        if self._handle is not None:
            old = self._handle
            self._guarded(lambda: os.fdatasync(old))
            os.close(old)
        self._handle, self.segment, self._number = handle, segment, number
        if self._sync == "interval" and self._syncer is None:
            self._syncer = threading.Thread(target=self._sync_often, name="journal", daemon=True)
            self._syncer.start()

    @property
    def number(self) -> int:
        """The number that the next record will have."""
        return self._number

    def append(self, payload: bytes) -> None:
        """Add one record."""
        if self._failure is not None:
            raise StorageError(
                f"{self.folder} takes nothing any more: {self._failure}. What was acknowledged before is safe; mend "
                "the disk and start again from this folder."
            )
        if len(payload) >= LARGEST:
            raise ValueError(f"a record must be below {LARGEST} bytes, got {len(payload)}; give fewer at once.")
        header = HEADER.pack(self._number, len(payload), zlib.crc32(payload))
        handle = self._handle
        assert handle is not None
        self._step("journal write")
        self._guarded(lambda: _write(handle, header + CHECK.pack(zlib.crc32(header)) + payload))
        if self._sync == "each":
            self._step("journal sync")
            self._guarded(lambda: os.fdatasync(handle))
        self._unsynced = True
        self._number += 1

    def close(self) -> None:
        """Sync, and let another process have the folder."""
        self._closing.set()
        if self._syncer is not None:
            self._syncer.join()
        if self._handle is not None:
            if self._failure is None:
                os.fdatasync(self._handle)
            os.close(self._handle)
            self._handle = None
        os.close(self._lock)

    def _guarded(self, action: Callable[[], int | None]) -> int | None:
        """Do it; if it fails, take nothing any more: after a failed sync nobody knows what is on the disk."""
        try:
            return action()
        except OSError as problem:
            self._failure = f"{problem.strerror or problem}"
            raise StorageError(f"{self.folder} could not be written: {self._failure}.") from problem

    def _sync_often(self) -> None:
        while not self._closing.wait(INTERVAL):
            handle = self._handle
            if self._unsynced and handle is not None:
                self._unsynced = False
                try:
                    self._step("journal sync")
                    os.fdatasync(handle)
                except OSError as problem:
                    if self._handle == handle:  # not merely replaced by a new segment meanwhile
                        self._failure = f"{problem.strerror or problem}"


def segments(folder: Path) -> dict[int, Path]:
    """The segments of a folder by number, in order."""
    found = {int(path.stem.split("-")[1]): path for path in folder.glob("journal-*.log")}
    return dict(sorted(found.items()))


def read_segment(path: Path, first: int | None, *, last: bool, torn: Callable[[int], None]) -> Iterator[bytes]:
    """The payloads of a segment's records. The last segment may end torn: that is cut off, others must be whole.

    first  the number that its first record must have, if that is known
    torn   told how many bytes were cut off
    """
    expected = first
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        magic = file.read(len(MAGIC))
        if magic != MAGIC:
            if last and (MAGIC.startswith(magic) or not magic.strip(b"\0")) and size <= len(MAGIC):
                path.unlink()
                torn(size)
                return
            if magic[:18] == MAGIC[:18] and len(magic) == len(MAGIC):
                raise StorageError(f"{path} has another format than this version reads; read it with a newer one.")
            raise StorageError(f"{path} does not begin as a journal does; it is damaged or something else.")
        while (start := file.tell()) < size:
            frame = file.read(FRAME)
            rest = size - start
            if len(frame) < FRAME:
                return _cut(path, start, last, torn)
            number, length, checksum = HEADER.unpack_from(frame)
            if zlib.crc32(frame[: HEADER.size]) != CHECK.unpack_from(frame, HEADER.size)[0]:
                if last and not (frame + file.read()).strip(b"\0"):  # room given before a crash, and never filled
                    return _cut(path, start, last, torn)
                raise _damaged(path, start, "the header of a record does not match its checksum")
            if rest < FRAME + length:
                return _cut(path, start, last, torn)
            payload = file.read(length)
            if zlib.crc32(payload) != checksum:
                raise _damaged(path, start, "a record does not match its checksum")
            if expected is not None and number != expected:
                raise _damaged(path, start, f"record {expected} should stand here, not {number}")
            yield payload
            expected = number + 1


def _cut(path: Path, start: int, last: bool, torn: Callable[[int], None]) -> None:
    if not last:
        raise _damaged(path, start, "a record is not whole, and there are later segments")
    torn(path.stat().st_size - start)
    os.truncate(path, start)


def _damaged(path: Path, start: int, why: str) -> StorageError:
    return StorageError(f"{path} is damaged at byte {start}: {why}; take back the file, or a saved copy of the bandit.")


def _name(segment: int) -> str:
    return f"journal-{segment:08d}.log"


def _write(handle: int, data: bytes) -> int:
    """All of it: a short write is the beginning of a failed one."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    return 0


def _lock(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise StorageError(f"{folder} is in use by another process or bandit; close that first.") from None
    return handle
