"""Files as tables: .csv and .parquet with names of columns, .npz with an array X and others beside it."""

import csv
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from neuralucb.problems.tables import Table, listed, read_labels, read_numbers
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.expansion import npz_bytes, parquet_bytes
from neuralucb.runtime.memory import require_memory

__all__ = ["ENDINGS", "read_table"]

ENDINGS = (".npz", ".csv", ".parquet")

COMMAS = "Are its values separated by something other than commas?"

NOT_NUMPY = "it is not a NumPy file of plain arrays, or it is damaged"

UNREADABLE = (ValueError, TypeError, AttributeError, RuntimeError, MemoryError, EOFError, BadZipFile, zlib.error)
"""What NumPy and zipfile raise for files that are damaged, encrypted, or not theirs."""

BYTES_PER_BYTE = 10
"""Memory per byte of a .csv: a Python string per value, and the column it becomes."""

OBJECT = 64
"""Bytes that Python needs for a text beside its letters."""

NUMBERS = ("reward", "rewards", "propensity")
"""What must be numbers; labels and arms may be words."""


def read_table(path: Path, take: Mapping[str, str | Sequence[str] | None]) -> Table:
    """Read a file, and take some columns out of it.

    Args:
        path: A .npz, .csv or .parquet file.
        take: The columns to take out by what they are for, such as {"label": "species"}. None is refused, with the
            columns that there are; except for the label of a .npz file, which is then y.

    Returns:
        The table: in `taken` the columns taken out, checked, and as columns all others, or the array X of a .npz file.

    Raises:
        InputError: If the file cannot be read or used; the message says why.
    """
    kind = path.suffix.lower()
    if kind not in ENDINGS:
        raise InputError(f"data must be a .npz, .csv or .parquet file, got {path}.")
    if not path.is_file():
        raise InputError(f"{path} cannot be read: it {'is a folder' if path.is_dir() else 'was not found'}.")
    try:
        if kind == ".npz":
            return _read_npz(path, _names(take, {"label": "y"}))
        names, columns, nested = _read_csv(path) if kind == ".csv" else _read_parquet(path)
    except UnicodeDecodeError:
        raise InputError(f"{path} cannot be read: it is not UTF-8 text; save it as UTF-8.") from None
    except (OSError, EOFError, KeyError, csv.Error, zlib.error) as problem:
        raise InputError(f"{path} cannot be read: {problem}.") from None
    if "" in names:
        raise InputError(
            f"column {names.index('') + 1} of {path.name} has no name; name it, or save the file without it (is it "
            "the index, which pandas writes unless index=False, or a comma at the end of the first line?)."
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{path.name} has more than one column named {', '.join(twice)}; rename them.")
    for purpose, name in _names(take, {}):
        if name not in names:
            hint = f" {COMMAS}" if len(names) == 1 else ""
            has = listed(names)
            raise InputError(f"{purpose} must name a column of {path.name}, got {name!r}; it has: {has}.{hint}")
        if name in nested:
            raise InputError(
                f"{purpose} {name} of {path.name} must be numbers or words, got {nested[name]}; name another."
            )
    by_name = dict(zip(names, columns, strict=True))
    taken = {
        str(name): _read_taken(purpose, str(name), by_name.pop(str(name)), path.name)
        for purpose, name in _names(take, {})
    }
    return Table(path.name, list(by_name), list(by_name.values()), taken, tuple(nested.items()))


def _names(take: Mapping[str, str | Sequence[str] | None], defaults: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """Purpose and name of every column to take; a column has one purpose."""
    found: list[tuple[str, str | None]] = []
    for purpose, given in take.items():
        chosen = defaults.get(purpose) if given is None else given
        parts = [chosen] if chosen is None or isinstance(chosen, str) else chosen
        found += [(purpose, part) for part in parts]
    names = [name for _, name in found]
    for purpose, name in found:
        if name is not None and names.count(name) > 1:
            raise InputError(f"{purpose} must name a column that nothing else names, got {name!r} twice.")
    return found


def _read_npz(path: Path, take: list[tuple[str, str | None]]) -> Table:
    """The array X as columns, and the arrays to take; others are not read."""
    wanted = ["X", *(str(name) for _, name in take)]
    try:
        with path.open("rb") as raw:
            _require(path, npz_bytes(path, wanted))
            file = np.load(raw, allow_pickle=False)
            names = None if isinstance(file, np.ndarray) else list(file)
            arrays: dict[str, Any] = {name: file[name] for name in wanted if names is not None and name in names}
    except InputError:
        raise
    except UNREADABLE:
        raise InputError(f"{path} cannot be read: {NOT_NUMPY}.") from None
    if len(arrays) < len(wanted):
        found = "one array without a name" if names is None else ", ".join(names) or "none"
        cure = "; --label names the labels, --rewards the rewards" if "y" in wanted and "X" in arrays else ""
        raise InputError(f"{path} must have the keys {' and '.join(wanted)}, got {found}{cure}.")
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise InputError(f"{path} cannot be read: {NOT_NUMPY}.")  # NumPy returns as bytes what is not an array
    X = arrays.pop("X")
    if X.ndim != 2 and not (X.ndim == 3 and X.dtype.kind in "biuf"):
        wanted_shape = "a table of rows and columns, or numbers with an axis of arms between them"
        raise InputError(f"X in {path} must be {wanted_shape}, got shape {X.shape}.")
    for purpose, name in take:
        array = arrays[str(name)]
        if array.shape[:1] != X.shape[:1] or array.ndim > (2 if purpose == "rewards" else 1):
            raise InputError(
                f"{name} in {path} must have one {purpose} for each of the {len(X)} rows, got shape {array.shape}."
            )
        if purpose in NUMBERS and array.dtype.kind not in "biuf":
            raise InputError(f"{name} in {path} must be numbers, got {array.dtype}.")
        if purpose != "label":  # which may be of any type: `labelled` checks it
            arrays[str(name)] = _read_taken(purpose, str(name), array, path.name)
    columns = [X[..., column] for column in range(X.shape[-1])]
    return Table(path.name, [str(column) for column in range(X.shape[-1])], columns, arrays)


def _read_taken(purpose: str, name: str, column: np.ndarray, file: str) -> np.ndarray:
    read = read_numbers if purpose in NUMBERS else read_labels
    return read(column, f"{purpose} {name}", file)


def _read_csv(path: Path) -> tuple[list[str], list[np.ndarray], dict[str, str]]:
    _require(path, BYTES_PER_BYTE * path.stat().st_size)
    with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets write a byte order mark
        reader = csv.reader(file, skipinitialspace=True)
        rows = [(reader.line_num, row) for row in reader if row]
    if len(rows) < 2:
        raise InputError(
            f"{path} must have a line of names and lines of values, got {'only names' if rows else 'none'}."
        )
    (_, names), *values = rows
    for line, row in values:
        if len(row) != len(names):
            hint = f" {COMMAS}" if len(names) == 1 else ""
            raise InputError(f"{path} line {line} has {len(row)} values, the first has {len(names)}.{hint}")
    columns = [np.asarray(column) for column in zip(*(row for _, row in values), strict=True)]
    return [name.strip() for name in names], columns, {}


def _read_parquet(path: Path) -> tuple[list[str], list[np.ndarray], dict[str, str]]:
    """Names, columns, and the types of those columns that hold lists, records or bytes."""
    try:
        from pyarrow import ArrowException, compute, parquet, types
    except ImportError:
        raise InputError(f"{path} needs pyarrow: pip install 'neuralucb[experiments]'.") from None
    nested, columns = {}, []
    try:
        # texts as they are stored, each once; `read_table` refuses two columns of one name, and does not say so
        schema = parquet.read_schema(path)
        file = parquet.ParquetFile(path, read_dictionary=[each.name for each in schema if _is_text(each.type)])
        _require(path, 2 * sum(parquet_bytes(file.metadata)))
        table = file.read()
        for name, column in zip(table.column_names, table.columns, strict=True):
            if types.is_dictionary(column.type):
                letters = [compute.binary_length(part.dictionary).take(part.indices) for part in column.chunks]
                _require(path, OBJECT * len(column) + 4 * sum(compute.sum(part).as_py() or 0 for part in letters))
                column = column.cast(column.type.value_type)  # or NumPy would get other words for missing ones
            plain = types.is_primitive(column.type) or types.is_decimal(column.type) or types.is_null(column.type)
            if plain or _is_text(column.type):
                columns.append(np.asarray(column.to_numpy()))
            else:
                nested[name] = str(column.type)
                columns.append(np.zeros(len(table)))
    except ArrowException:
        raise InputError(f"{path} cannot be read: it is not a Parquet file, or it is damaged.") from None
    return list(table.column_names), columns, nested


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _require(path: Path, needed: int) -> None:
    require_memory(needed, what=f"reading {path}", cure="keep fewer rows or columns in it", host=True)
