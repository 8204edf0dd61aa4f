"""Snapshots: arrays in safetensors, the rest in JSON, and a manifest with their SHA-256, written last.

A folder holds the last five, or what a `Retention` says, and those that are pinned. A snapshot exists once its manifest
does; files without one, left by a crash, are ignored.
"""

import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neuralucb.online.codec import TYPES, check_type
from neuralucb.online.disk import Step, make_folder, sync_folder, write_private
from neuralucb.runtime.errors import StorageError
from neuralucb.runtime.files import write_whole

__all__ = [
    "Retention",
    "Snapshot",
    "describe",
    "numbers",
    "oldest_segment",
    "pin",
    "pinned",
    "read",
    "read_newest_intact",
    "remove_partial_files",
    "write",
]

FORMAT = 2
"""1, of version 0.1, had the columns of pending decisions in the JSON."""
REPLAYABLE = 5
"""Snapshots after which the journal is kept: if the newest is damaged, one of those before takes its place."""
DAY = 86400
LARGEST_MANIFEST = 1 << 16
PIECE = 1 << 22
"""Bytes written at a time: neither hashing nor writing them needs Python's lock."""


class Snapshot(NamedTuple):
    """A whole bandit at one moment."""

    fields: dict[str, Any]
    """plain values"""
    arrays: dict[str, np.ndarray]
    segment: int = 0
    """the journal segment that follows it; in the manifest too, as `note`, where it can be read without the rest"""


class Retention(NamedTuple):
    """Which snapshots are kept, beside those that are pinned."""

    last: int = 5
    """the last so many"""
    days: int = 0
    """and the last one of each of so many days, in UTC"""


class _DamagedError(StorageError):
    """A snapshot cannot be read; one before it may be."""


def write(folder: Path, snapshot: Snapshot, *, retain: Retention = Retention(), step: Step) -> int:  # noqa: B008
    """Write the newest snapshot, delete those that are not retained, and return its number."""
    make_folder(folder)
    number = max(numbers(folder), default=0) + 1
    contents = {
        "arrays.safetensors": _safetensors(snapshot.arrays),
        "state.json": [json.dumps(snapshot.fields, allow_nan=False).encode()],
    }
    try:
        parts = {}
        for what, pieces in contents.items():
            step(f"snapshot {what}")
            parts[_part(number, what)] = _write_part(folder / _part(number, what), pieces)
        sync_folder(folder)
        step("snapshot manifest")
        manifest = {"format": FORMAT, "note": snapshot.segment, "parts": parts}
        seal = _digest(json.dumps(manifest, sort_keys=True).encode())
        sealed = json.dumps({"manifest": manifest, "sha256": seal})
        _write_part(folder / _part(number, "manifest.json"), [sealed.encode()])
        step("snapshot sync")
        sync_folder(folder)
    except OSError as problem:
        raise StorageError(f"{folder} could not be written: {problem.strerror or problem}.") from problem
    step("snapshot tidy")
    _delete_all_but(folder, _retained(folder, retain))
    return number


def read(folder: Path, number: int | None = None) -> tuple[int, Snapshot]:
    """A snapshot and its number, by default the newest; every byte of it is checked."""
    number = _existing(folder)[-1] if number is None else number
    manifest = _read_manifest(folder / _part(number, "manifest.json"))
    data = {name.split(".", 1)[1]: _read_part(folder / name, part) for name, part in manifest["parts"].items()}
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        fields, arrays = json.loads(data["state.json"]), load(data["arrays.safetensors"])
        for name, array in arrays.items():
            check_type(name, array.dtype.str)
        return number, Snapshot(fields, arrays, manifest["note"])
    except (KeyError, ValueError, TypeError, RecursionError, SafetensorError) as problem:
        raise _DamagedError(f"{folder} has a snapshot {number} that cannot be read: {problem}.") from problem


def describe(folder: Path, number: int) -> tuple[dict[str, Any], float, int]:
    """The plain values of a snapshot's state, when it was written (seconds since 1970) and its size in bytes."""
    path = folder / _part(number, "manifest.json")
    manifest = _read_manifest(path)
    name = _part(number, "state.json")
    fields = json.loads(_read_part(folder / name, manifest["parts"][name]))["state"]
    return fields, path.stat().st_mtime, sum(part["bytes"] for part in manifest["parts"].values())


def read_newest_intact(folder: Path) -> tuple[Snapshot, str | None]:
    """The newest snapshot that is not damaged, and what is wrong with the newest of all, if it is.

    Raises StorageError if all are damaged, or the newest has a newer format: an older one would then be no cure.
    """
    found: list[StorageError] = []
    for number in reversed(_existing(folder)):
        try:
            _, snapshot = read(folder, number)
        except _DamagedError as problem:
            found.append(problem)
        else:
            return snapshot, f"{found[0]} Continued from snapshot {number} and the journal" if found else None
    raise found[0]


def numbers(folder: Path) -> list[int]:
    """The numbers of a folder's snapshots, oldest first."""
    matches = (re.fullmatch(r"snapshot-(\d+)\.manifest\.json", path.name) for path in folder.glob("snapshot-*"))
    return sorted(int(match[1]) for match in matches if match)


def pin(folder: Path, number: int, *, pinned: bool) -> None:
    """Keep a snapshot whatever the retention says, or no longer."""
    path = folder / _part(number, "pinned")
    if pinned:
        write_whole(path, partial(write_private, pieces=[b""]))
    else:
        path.unlink(missing_ok=True)


def pinned(folder: Path) -> set[int]:
    """The numbers of those that are pinned."""
    return {int(path.name.split("-")[1].split(".")[0]) for path in folder.glob("snapshot-*.pinned")}


def oldest_segment(folder: Path) -> int:
    """The oldest journal segment that one of the last snapshots needs: that after the first with a readable manifest.

    Older snapshots, which are kept for a rollback, need none.
    """
    existing = _existing(folder)
    for number in [each for each in existing if each > existing[-1] - REPLAYABLE]:
        with suppress(_DamagedError):
            return int(_read_manifest(folder / _part(number, "manifest.json"))["note"])
    return 0


def remove_partial_files(folder: Path) -> None:
    """Delete files that crashes left incomplete. Nobody else may be writing to the folder."""
    for partial_file in folder.glob(".snapshot-*.part"):
        partial_file.unlink(missing_ok=True)


def _existing(folder: Path) -> list[int]:
    """The numbers of a folder that must have snapshots."""
    existing = numbers(folder)
    if not existing:
        raise StorageError(f"{folder} has no snapshot; is it the folder of a bandit?")
    return existing


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_MANIFEST:
            raise ValueError("it is too long")
        sealed = json.loads(path.read_bytes())
        manifest = sealed["manifest"]
        if manifest["format"] > FORMAT:
            raise StorageError(
                f"{path} has format {manifest['format']}, but this version reads up to {FORMAT}; update neuralucb."
            )
        if _digest(json.dumps(manifest, sort_keys=True).encode()) != sealed["sha256"]:
            raise ValueError("it does not match its SHA-256")
        for name, part in manifest["parts"].items():
            if Path(name).name != name or not isinstance(part["bytes"], int):
                raise ValueError("it names invalid parts")
        return manifest
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise _DamagedError(f"{path} is damaged: {problem}; restore it from a backup.") from problem


def _read_part(path: Path, part: dict[str, Any]) -> bytes:
    """The bytes of a part. The size is compared first, so that a wrong file costs no memory."""
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size == part["bytes"] else b""
    except OSError as problem:
        raise _DamagedError(f"{path} cannot be read: {problem.strerror}; restore it from a backup.") from problem
    if size != part["bytes"] or _digest(data) != part["sha256"]:
        raise _DamagedError(
            f"{path} is damaged: its {size} bytes do not match the SHA-256 of the {part['bytes']} bytes that were "
            "written; restore it from a backup."
        )
    return data


def _retained(folder: Path, retention: Retention) -> set[int]:
    existing = numbers(folder)
    newest_of: dict[int, int] = {}
    now = time.time()
    for number in existing:
        with suppress(OSError):
            at = (folder / _part(number, "manifest.json")).stat().st_mtime
            if now // DAY - at // DAY < retention.days:
                newest_of[int(at // DAY)] = number
    return {*existing[-retention.last :], *newest_of.values(), *pinned(folder)}


def _delete_all_but(folder: Path, retained: set[int]) -> None:
    """Manifests first: a snapshot that has one is complete."""
    for path in sorted(folder.glob("snapshot-*.*"), key=lambda path: "manifest" not in path.name):
        match = re.match(r"snapshot-(\d+)\.", path.name)
        if match and int(match[1]) not in retained:
            path.unlink(missing_ok=True)


def _write_part(path: Path, pieces: Iterable[bytes | memoryview]) -> dict[str, Any]:
    """Write a file that only its owner may read; returns its size and SHA-256."""
    digest, size = hashlib.sha256(), 0

    def counted() -> Iterator[bytes | memoryview]:
        nonlocal size
        for piece in pieces:
            digest.update(piece)
            size += len(piece)
            yield piece

    write_whole(path, partial(write_private, pieces=counted()))
    return {"sha256": digest.hexdigest(), "bytes": size}


def _safetensors(arrays: dict[str, np.ndarray]) -> Iterator[bytes | memoryview]:
    """Arrays in the format safetensors, in pieces that are not copied: the length of a header, the header, the data.

    The library's own function would make two copies of everything, and hold Python's lock meanwhile.
    """
    header, end = {}, 0
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)  # so that all are aligned
    for name, array in ordered:
        kind, start, end = TYPES[check_type(name, array.dtype.str).str], end, end + array.nbytes
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for _, array in ordered:
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        yield from (data[start : start + PIECE] for start in range(0, len(data), PIECE))


def _part(number: int, what: str) -> str:
    return f"snapshot-{number:08d}.{what}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
