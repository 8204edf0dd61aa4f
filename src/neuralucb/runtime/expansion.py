"""How large a file becomes when it is read, by what its metadata says: a bomb is refused before it is expanded."""

import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from neuralucb.runtime.memory import require_memory

__all__ = ["npz_bytes", "parquet_bytes", "refuse_bomb"]

WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
"""Bytes per value in memory, by Parquet's types."""

POINTER = 16
"""Bytes per text beside its letters: where it begins, and how long it is."""

BOMB = 1000
"""How many times its own size a file may become, if that is more than the memory that is free."""


def parquet_bytes(metadata: Any) -> list[int]:
    """Bytes that each row group takes in memory, without the letters of texts.

    Equal values are stored once, however often they occur: neither the size of the file nor the uncompressed size that
    the file states says how many there are.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    columns = [[group.column(number) for number in range(group.num_columns)] for group in groups]
    widths = [_width(metadata.schema.column(number)) for number in range(metadata.num_columns)]
    return [
        max(group.total_byte_size, sum(each.num_values * width for each, width in zip(found, widths, strict=True)))
        for group, found in zip(groups, columns, strict=True)
    ]


def npz_bytes(path: Path, wanted: Collection[str] | None = None) -> int:
    """Bytes that the arrays of a .npz file take, all or those wanted; 0 for a file that is no archive."""
    try:
        with ZipFile(path) as archive:
            found = archive.infolist()
    except (BadZipFile, OSError, EOFError, ValueError, RuntimeError, zlib.error):
        return 0  # NumPy will say what is wrong
    return sum(each.file_size for each in found if wanted is None or each.filename.removesuffix(".npy") in wanted)


def refuse_bomb(path: Path, needed: int, *, cure: str) -> None:
    """Raise InputError if a file that is read in parts becomes so much larger that one part may not fit into memory."""
    if needed > BOMB * path.stat().st_size:
        require_memory(needed, what=f"reading {path}", cure=cure, host=True)


def _width(column: Any) -> int:
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return int(column.length)
    return WIDTHS.get(column.physical_type, POINTER)
