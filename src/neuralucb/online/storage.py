"""What is stored cannot be read or written: one error, and the small things that both journal and snapshots need."""

import json
import math
import os
import struct
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["StorageError", "make_folder", "pack", "sync_folder", "unpack"]

_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode

Step = Callable[[str], None]
"""Told the name of each step before it is done; what it raises stops there. For tests of crashes."""


class StorageError(Exception):
    """A file of a bandit is damaged, of a newer format, in use, or cannot be written; it says which, and why."""


def pack(fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Plain values and arrays as bytes: the length of a JSON text, the text, then the arrays one after the other."""
    shapes = _shapes(tuple((name, array.dtype, array.shape) for name, array in arrays.items()))
    text = f"[{_encode(fields)},{shapes}]".encode()
    return b"".join([struct.pack("<I", len(text)), text, *(array.tobytes() for array in arrays.values())])


@lru_cache(maxsize=64)
def _shapes(columns: tuple[tuple[str, np.dtype, tuple[int, ...]], ...]) -> str:
    """Names, types and shapes in JSON; the same for one decision after the other."""
    return _encode({name: (kind.str, shape) for name, kind, shape in columns})


def unpack(payload: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `pack` was given. The payload must be known to be whole: a checksum is the caller's affair."""
    (length,) = struct.unpack_from("<I", payload)
    start = 4 + length
    text = payload[4:start].decode()
    fields, end = _decode(text, 1)
    arrays = {
        name: np.ndarray(shape, kind, payload, start + offset)
        for name, kind, shape, offset in _layout(text[end + 1 : -1])
    }
    return fields, arrays


@lru_cache(maxsize=64)
def _layout(shapes: str) -> list[tuple[str, np.dtype, tuple[int, ...], int]]:
    """Name, type, shape and place of every array, from what `_shapes` wrote."""
    layout, offset = [], 0
    for name, (kind, shape) in json.loads(shapes).items():
        layout.append((name, np.dtype(kind), tuple(shape), offset))
        offset += math.prod(shape) * np.dtype(kind).itemsize
    return layout


def make_folder(folder: Path) -> None:
    """A folder, and durably so: the names of new ones are in their parents."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StorageError(f"{folder} cannot be a folder: {problem.strerror or problem}.") from None
    for each in missing:
        sync_folder(each.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
