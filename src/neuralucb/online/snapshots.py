"""Snapshots: arrays in safetensors, the rest in JSON, and a manifest with their SHA-256, written last.

A folder keeps the last five. Only what a manifest names exists; a crash before that leaves nothing but litter.
"""

import hashlib
import json
import re
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neuralucb.online.codec import Step, make_folder, sync_folder
from neuralucb.runtime.errors import InputError, StorageError
from neuralucb.runtime.files import write_whole

__all__ = ["KEPT", "Snapshot", "note", "numbers", "read", "sweep_up", "write"]

FORMAT = 1
KEPT = 5


class Snapshot(NamedTuple):
    """All of a bandit at one moment."""

    fields: dict[str, Any]
    """plain values"""
    arrays: dict[str, np.ndarray]
    note: int = 0
    """kept in the manifest, to be read without the rest"""


def write(folder: Path, snapshot: Snapshot, *, kept: int = KEPT, step: Step) -> int:
    """Write it as the newest, forget all but the last `kept`, and return its number."""
    from safetensors.numpy import save

    make_folder(folder)
    number = max(numbers(folder), default=0) + 1
    parts = {
        _part(number, "arrays.safetensors"): save({k: np.asarray(v, order="C") for k, v in snapshot.arrays.items()}),
        _part(number, "state.json"): json.dumps(snapshot.fields, allow_nan=False).encode(),
    }
    manifest = {
        "format": FORMAT,
        "note": snapshot.note,
        "parts": {name: {"sha256": _digest(data), "bytes": len(data)} for name, data in parts.items()},
    }
    sealed = json.dumps({"manifest": manifest, "sha256": _digest(json.dumps(manifest, sort_keys=True).encode())})
    try:
        for name, data in parts.items():
            step(f"snapshot {name.split('.', 1)[1]}")
            write_whole(folder / name, partial(_write, data=data))
        sync_folder(folder)
        step("snapshot manifest")
        write_whole(folder / _part(number, "manifest.json"), partial(_write, data=sealed.encode()))
        step("snapshot sync")
        sync_folder(folder)
    except OSError as problem:
        raise StorageError(f"{folder} could not be written: {problem.strerror or problem}.") from problem
    step("snapshot tidy")
    _tidy(folder, numbers(folder)[-kept:])
    return number


def numbers(folder: Path) -> list[int]:
    """The snapshots of a folder, oldest first."""
    matches = (re.fullmatch(r"snapshot-(\d+)\.manifest\.json", path.name) for path in folder.glob("snapshot-*"))
    return sorted(int(match[1]) for match in matches if match)


def note(folder: Path, number: int) -> int:
    """The note of a snapshot."""
    return int(_manifest(folder / _part(number, "manifest.json"))["note"])


def read(folder: Path, number: int | None = None) -> tuple[int, Snapshot]:
    """A snapshot, the newest if no number is given; every byte of it is checked."""
    there = numbers(folder)
    if not there:
        raise StorageError(f"{folder} has no snapshot; is it the folder of a bandit?")
    number = there[-1] if number is None else number
    manifest = _manifest(folder / _part(number, "manifest.json"))
    data = {name.split(".", 1)[1]: _checked(folder / name, part) for name, part in manifest["parts"].items()}
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return number, Snapshot(json.loads(data["state.json"]), load(data["arrays.safetensors"]))
    except (KeyError, ValueError, TypeError, RecursionError, SafetensorError) as problem:
        raise StorageError(f"{folder} has a snapshot {number} that cannot be read: {problem}.") from problem


def _manifest(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > 1 << 16:
            raise InputError("it is too long")
        sealed = json.loads(path.read_bytes())
        manifest = sealed["manifest"]
        if manifest["format"] > FORMAT:
            raise StorageError(
                f"{path} has format {manifest['format']}, this version reads up to {FORMAT}; update neuralucb."
            )
        if _digest(json.dumps(manifest, sort_keys=True).encode()) != sealed["sha256"]:
            raise InputError("it does not match its SHA-256")
        for name, part in manifest["parts"].items():
            if Path(name).name != name or not isinstance(part["bytes"], int):
                raise InputError("it names parts that it cannot have")
        return manifest
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise StorageError(f"{path} is damaged: {problem}; take back the file, or an older snapshot.") from problem


def _checked(path: Path, part: dict[str, Any]) -> bytes:
    """The bytes of a part. The size is compared before anything is read, so a wrong file costs no memory."""
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size == part["bytes"] else b""
    except OSError as problem:
        raise StorageError(f"{path} cannot be read: {problem.strerror}; take back the file.") from problem
    if size != part["bytes"] or _digest(data) != part["sha256"]:
        raise StorageError(
            f"{path} is damaged: {size} bytes that do not match their SHA-256 (of {part['bytes']} bytes); take back "
            "the file, or an older snapshot."
        )
    return data


def _tidy(folder: Path, keep: list[int]) -> None:
    """Manifests first: what has one is whole."""
    for path in sorted(folder.glob("snapshot-*.*"), key=lambda path: "manifest" not in path.name):
        match = re.match(r"snapshot-(\d+)\.", path.name)
        if match and int(match[1]) not in keep:
            path.unlink(missing_ok=True)


def sweep_up(folder: Path) -> None:
    """Delete what crashes left half written. The caller is the only one who writes here."""
    for litter in folder.glob(".snapshot-*.part"):
        litter.unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _part(number: int, what: str) -> str:
    return f"snapshot-{number:08d}.{what}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
