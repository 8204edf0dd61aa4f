"""An append-only journal, in segments: every record has a number, a length and checksums; one process writes.

A crash may tear the end of a segment: an incomplete last record is cut off and counted. Damage before it is an error.
"""

import errno
import os
import re
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, TypeAlias

from neuralucb.online.disk import FolderLock, Step, open_for_append, sync_data, sync_folder, write_all
from neuralucb.online.lesson_record import warn
from neuralucb.runtime.errors import InputError, StorageError

__all__ = ["SYNCS", "Journal", "Sync", "holds_records", "read_segment", "segments"]

Sync: TypeAlias = Literal["each", "interval", "none"]
SYNCS = ("each", "interval", "none")

FAMILY = b"neuralucb journal "
MAGIC = FAMILY + b"1\n"
"""The first line of a segment, with the number of its format."""
HEADER = struct.Struct("<QII")
"""The record's number, and the length and CRC of its payload; the CRC of these three follows."""
CHECK = struct.Struct("<I")
FRAME = HEADER.size + CHECK.size
LARGEST = 1 << 31
PAGE = 4096

CURE = "mend the disk, and open the folder again"

INTERVAL = 0.05
"""Seconds between two syncs with `interval`: what a power cut may lose."""


class _Record(NamedTuple):
    number: int
    payload: bytes


class Journal:
    """Appends records to the newest segment of a folder. A record is written before `append` returns.

    sync  `each`: on disk before `append` returns; `interval`: within 50 ms; `none`: when the system decides

    Killing the process loses nothing in any of these. After a failed write or sync no more writes are accepted.
    """

    def __init__(self, folder: Path, sync: Sync, step: Step) -> None:
        self.folder: Path = folder
        self._sync, self._step = sync, step
        self._lock = FolderLock(folder)
        self._handle: int | None = None
        self._file_lock = threading.Lock()
        """held while the file is synced, or replaced by the next segment's"""
        self._failure: str | None = None
        self._unsynced = False
        self._closed = False
        self.number: int = 0
        """of the next record"""
        self.segment: int = 0
        self._newest = ""
        """the path of the segment: making it anew for every record takes longer than looking it up"""
        self._closing = threading.Event()
        self._syncer: threading.Thread | None = None

    def begin(self, segment: int, number: int) -> None:
        """Write to a new segment, whose first record has this number."""
        self.check()
        with self._file_lock, _StopOnFailure(self):
            if self._handle is not None:
                sync_data(self._handle)  # first: later records must not be on disk before it
            self._step("journal segment")
            handle = open_for_append(self._path(segment))
            write_all(handle, MAGIC)
            sync_data(handle)
            sync_folder(self.folder)
            if self._handle is not None:
                os.close(self._handle)
            self._handle, self.segment, self.number = handle, segment, number
            self._newest = str(self._path(segment))
        if self._sync == "interval" and self._syncer is None:
            self._syncer = threading.Thread(target=self._sync_regularly, name="journal", daemon=True)
            self._syncer.start()

    def append(self, payload: bytes) -> None:
        """Add one record."""
        self.check()
        if len(payload) >= LARGEST:
            raise InputError(
                f"a record must be below {LARGEST} bytes, got {len(payload)}; pass fewer decisions or rewards at once."
            )
        header = HEADER.pack(self.number, len(payload), zlib.crc32(payload))
        handle = self._handle
        assert handle is not None
        with _StopOnFailure(self):
            self._require_file(handle)
            self._step("journal write")
            write_all(handle, header + CHECK.pack(zlib.crc32(header)) + payload)
            if self._sync == "each":
                self._step("journal sync")
                sync_data(handle)
            self._unsynced = True
            self.number += 1

    def fail(self, why: str) -> None:
        """Accept no more writes, and say so."""
        if self._failure is None:
            self._failure = why
            warn(f"{self._words()}; {CURE}.")

    def check(self) -> None:
        """Raise StorageError if no more writes are accepted."""
        if self._failure is not None:
            raise StorageError(f"{self._words()}. What was acknowledged before is safe; {CURE}.")
        if self._closed:
            raise StorageError(f"{self.folder} accepts no more writes: it is closed. Open the folder again.")

    def failure(self) -> str | None:
        """Why no more writes are accepted, if so; that the folder was deleted is noticed here too."""
        handle = self._handle
        if self._failure is None and handle is not None:
            with suppress(StorageError), _StopOnFailure(self):
                self._require_file(handle)
        return None if self._failure is None else f"{self._words()}; {CURE}"

    def close(self) -> None:
        """Sync, and release the folder. Closing twice does no harm."""
        self._closing.set()
        if self._syncer is not None:
            self._syncer.join()
        handle, self._handle = self._handle, None
        self._closed = True
        try:
            if handle is not None and self._failure is None:
                with _StopOnFailure(self):
                    sync_data(handle)
        finally:
            if handle is not None:
                os.close(handle)
            self._lock.release()

    def _words(self) -> str:
        return f"{self.folder} accepts no more writes: {self._failure}"

    def _path(self, segment: int) -> Path:
        return self.folder / f"journal-{segment:08d}.log"

    def _require_file(self, handle: int) -> None:
        """Raise OSError if the segment is no longer in its folder: what is written to it would be lost."""
        try:
            found = os.path.samestat(os.stat(self._newest), os.fstat(handle))
        except FileNotFoundError:
            found = False
        if not found:
            raise FileNotFoundError(errno.ENOENT, "its newest segment was deleted, moved or replaced")

    def _sync_regularly(self) -> None:
        while not self._closing.wait(INTERVAL):
            with self._file_lock:
                if self._unsynced and self._handle is not None and self._failure is None:
                    self._unsynced = False
                    try:
                        sync_data(self._handle)
                    except OSError as problem:
                        self.fail(problem.strerror or str(problem))


class _StopOnFailure:
    """Ends all writing when a write or a sync fails or is interrupted: what is on disk is then unknown."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if problem is None:
            return
        why = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
        self._journal.fail(why)
        if isinstance(problem, OSError):
            raise StorageError(f"{self._journal.folder} could not be written: {why}.") from problem


def segments(folder: Path) -> dict[int, Path]:
    """The segments of a folder, by number and in order."""
    matches = ((re.fullmatch(r"journal-(\d+)\.log", path.name), path) for path in folder.glob("journal-*.log"))
    return dict(sorted((int(match[1]), path) for match, path in matches if match))


def read_segment(path: Path, first: int | None, *, last: bool, torn: Callable[[int], None]) -> Iterator[bytes]:
    """The payloads of a segment's records. A torn end is cut off, but only from the last segment.

    first  the number that its first record must have, if that is known
    torn   called with the number of bytes that were cut off
    """
    expected = first
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        has_magic = _check_magic(path, file.read(len(MAGIC)), size, last)
        end = len(MAGIC)
        while has_magic and end < size:
            record = _read_record(file, path, end, size)
            if record is None:
                break
            if expected is not None and record.number != expected:
                raise _damaged(path, end, f"expected record {expected} here, found {record.number}")
            yield record.payload
            end, expected = end + FRAME + len(record.payload), record.number + 1
    # the file is closed: some systems neither delete nor truncate one that is open
    if not has_magic:
        path.unlink()
        torn(size)
    elif end < size:
        _cut(path, end, last)
        torn(size - end)


def holds_records(path: Path) -> bool:
    """Whether a segment has more than its first line."""
    return path.stat().st_size > len(MAGIC)


def _check_magic(path: Path, magic: bytes, size: int, last: bool) -> bool:
    """Whether a segment begins as it must; False for one that a crash left without a complete first line."""
    if magic == MAGIC:
        return True
    if last and (MAGIC.startswith(magic) or not magic.strip(b"\0")) and size <= len(MAGIC):
        return False
    if magic[: len(FAMILY)] == FAMILY and len(magic) == len(MAGIC):
        raise StorageError(f"{path} has another format than this version reads; update neuralucb.")
    raise StorageError(f"{path} does not begin like a journal; it is damaged, or another kind of file.")


def _read_record(file: BinaryIO, path: Path, start: int, size: int) -> _Record | None:
    """The record at byte `start`; None where it is torn, so that the file ends here."""
    frame = file.read(FRAME)
    if len(frame) < FRAME:
        return None
    number, length, checksum = HEADER.unpack_from(frame)
    if zlib.crc32(frame[: HEADER.size]) != CHECK.unpack_from(frame, HEADER.size)[0]:
        damage = "the header of a record does not match its checksum"
    elif start + FRAME + length > size:
        return None
    else:
        payload = file.read(length)
        if zlib.crc32(payload) == checksum:
            return _Record(number, payload)
        damage = "a record does not match its checksum"
    file.seek(start)
    if _was_never_filled(start, file.read()):
        return None
    raise _damaged(path, start, damage)


def _was_never_filled(start: int, rest: bytes) -> bool:
    """Whether the rest of a file ends in whole pages of zeros: allocated before a power cut, and never filled."""
    written = start + len(rest.rstrip(b"\0"))
    return -(-written // PAGE) * PAGE < start + len(rest) or not rest.strip(b"\0")


def _cut(path: Path, end: int, last: bool) -> None:
    if not last:
        raise _damaged(path, end, "a record is incomplete, although later segments exist")
    with path.open("r+b") as file:
        file.truncate(end)
        os.fsync(file.fileno())


def _damaged(path: Path, start: int, why: str) -> StorageError:
    return StorageError(f"{path} is damaged at byte {start}: {why}; restore it from a backup.")
