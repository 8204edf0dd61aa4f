"""Files of labelled rows: .npz with the keys X and y, .csv and .parquet with a column of labels."""

import csv
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from neuralucb.runtime.errors import InputError

__all__ = ["Table", "is_missing", "read_table"]

MISSING = ("", "?", "<na>", "na", "n/a", "nan", "nat", "none", "null")
"""Words that stand for a missing value, in lower or upper case."""


MOST_CATEGORIES = 100
"""A column with more different words than this holds names, not categories, and is refused."""


ENDINGS = {".npz", ".csv", ".parquet"}


COMMAS = "Are its values separated by something other than commas?"


NOT_NUMPY = "it is not a NumPy file of plain arrays, or it is damaged"


UNREADABLE = (ValueError, TypeError, AttributeError, RuntimeError, MemoryError, EOFError, BadZipFile, zlib.error)
"""What NumPy and zipfile raise for files that are damaged, encrypted, or not theirs."""


class Table(NamedTuple):
    """The content of a file: columns by name, and labels. The columns of a matrix are named 0, 1, …"""

    file: str
    names: list[str]
    columns: list[np.ndarray]
    labels: np.ndarray
    nested: tuple[tuple[str, str], ...] = ()
    """columns of lists, records or bytes, with their types: these can only be dropped"""

    def rows(self, drop: str = "none") -> np.ndarray:
        """The columns as numbers, words as one-hot, without the columns to drop (names joined by +)."""
        dropped = set() if drop == "none" else set(drop.split("+"))
        unknown = sorted(dropped - set(self.names))
        if unknown:
            has = _listed(self.names)
            raise InputError(f"drop must name columns of {self.file}, got {', '.join(unknown)}; it has: {has}.")
        kept = [(name, column) for name, column in zip(self.names, self.columns, strict=True) if name not in dropped]
        for name, kind in self.nested:
            if name not in dropped:
                raise InputError(
                    f"column {name} of {self.file} must be numbers or words, got {kind}; drop it with drop={name}, or "
                    "split it into several columns."
                )
        if not kept:
            raise InputError(f"{self.file} has no column left but the label; drop fewer.")
        if all(column.dtype.kind in "biuf" for _, column in kept):
            for name, column in kept:
                _refuse_missing(name, column, self.file)
            return np.stack([column for _, column in kept], axis=1)
        return np.concatenate([_encode(name, column, self.file) for name, column in kept], axis=1)


def read_table(path: Path, label: str | None) -> Table:
    """Read a file of labelled rows.

    Args:
        path: a .npz, .csv or .parquet file.
        label: the column of labels; None for a .npz file, whose labels are y.

    Raises:
        InputError: if the file cannot be read or used; the message says why.
    """
    kind = path.suffix.lower()
    if kind not in ENDINGS:
        raise InputError(f"data must be a .npz, .csv or .parquet file, got {path}.")
    if kind == ".npz" and label is not None:
        raise InputError(f"label must not be given with a .npz file, whose labels are y, got {label!r}.")
    if not path.is_file():
        raise InputError(f"{path} cannot be read: it {'is a folder' if path.is_dir() else 'was not found'}.")
    try:
        if kind == ".npz":
            return _read_npz(path)
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
    if label not in names:
        hint = f" {COMMAS}" if len(names) == 1 else ""
        raise InputError(f"label must name a column of {path.name}, got {label!r}; it has: {_listed(names)}.{hint}")
    if label in nested:
        raise InputError(f"label {label} of {path.name} must be numbers or words, got {nested[label]}; name another.")
    place = names.index(label)
    labels = _labels(columns.pop(place), names.pop(place), path.name)
    return Table(path.name, names, columns, labels, tuple(nested.items()))


def is_missing(values: np.ndarray) -> np.ndarray:
    """Which values are missing: NaN, None, NaT, and words that stand for them."""
    if values.dtype.kind in "biu":
        return np.zeros(values.shape, bool)
    if values.dtype.kind in "fc":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    return np.asarray([str(value).strip().lower() in MISSING for value in values], bool)


def _read_npz(path: Path) -> Table:
    try:
        with path.open("rb") as raw:
            file = np.load(raw, allow_pickle=False)
            names = None if isinstance(file, np.ndarray) else list(file)
            arrays = {name: file[name] for name in ("X", "y") if names is not None and name in names}
    except UNREADABLE:
        raise InputError(f"{path} cannot be read: {NOT_NUMPY}.") from None
    if len(arrays) < 2:
        found = "one array without a name" if names is None else ", ".join(names) or "none"
        raise InputError(f"{path} must have the keys X and y, got {found}.")
    X, y = arrays["X"], arrays["y"]
    if not isinstance(X, np.ndarray) or not isinstance(y, np.ndarray):
        raise InputError(f"{path} cannot be read: {NOT_NUMPY}.")  # NumPy returns as bytes what is not an array
    if X.ndim != 2:
        raise InputError(f"X in {path} must be a table of rows and columns, got shape {X.shape}.")
    if y.shape != X.shape[:1]:
        raise InputError(f"y in {path} must have one label for each of the {len(X)} rows, got shape {y.shape}.")
    return Table(path.name, [str(column) for column in range(X.shape[1])], list(X.T), y)


def _read_csv(path: Path) -> tuple[list[str], list[np.ndarray], dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets write a byte order mark
        reader = csv.reader(file, skipinitialspace=True)
        rows = [(reader.line_num, row) for row in reader if row]
    if len(rows) < 2:
        raise InputError(f"{path} must have a line of names and lines of values, got {len(rows)} lines.")
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
        from pyarrow import ArrowException, parquet, types
    except ImportError:
        raise InputError(f"{path} needs pyarrow: pip install 'neuralucb[experiments]'.") from None
    nested, columns = {}, []
    try:
        table = parquet.ParquetFile(path).read()  # `read_table` refuses two columns of one name, and does not say so
        for name, column in zip(table.column_names, table.columns, strict=True):
            if types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)  # or NumPy would get other words for missing ones
            plain = types.is_primitive(column.type) or types.is_decimal(column.type) or types.is_null(column.type)
            if plain or str(column.type) in ("string", "large_string", "string_view"):
                columns.append(np.asarray(column.to_numpy()))
            else:
                nested[name] = str(column.type)
                columns.append(np.zeros(len(table)))
    except ArrowException:
        raise InputError(f"{path} cannot be read: it is not a Parquet file, or it is damaged.") from None
    return list(table.column_names), columns, nested


def _encode(name: str, column: np.ndarray, file: str) -> np.ndarray:
    """A column of numbers as [rows, 1], a column of words as one-hot [rows, categories]."""
    if column.dtype.kind not in "biufOUST":
        raise InputError(
            f"column {name} of {file} must be numbers or words, got {column.dtype}; drop it (drop={name})."
        )
    numbers = _numbers(column)
    if numbers is not None and np.isfinite(numbers).all():
        return numbers[:, None]
    for written in (column, numbers):
        if written is not None:
            _refuse_missing(name, written, file)
    words: Any = np.asarray([str(value).strip() for value in column])
    wrong = [row for row, word in enumerate(words) if _number(word) is None]
    if 2 * len(wrong) < len(words):
        raise InputError(f"column {name} of {file} has {str(words[wrong[0]])!r} among numbers, in row {wrong[0]}.")
    categories, codes = np.unique(words, return_inverse=True)
    if len(categories) > MOST_CATEGORIES:
        raise InputError(
            f"column {name} of {file} has {len(categories)} different words, more than the {MOST_CATEGORIES} that are "
            f"allowed for categories; drop it (drop={name}), or encode it yourself."
        )
    return np.eye(len(categories))[codes]


def _labels(column: np.ndarray, name: str, file: str) -> np.ndarray:
    """Labels, as numbers if all are written as numbers, so that 1 and 1.0 are one class."""
    missing = np.flatnonzero(is_missing(column))
    if missing.size:
        row = missing[0]
        raise InputError(f"label {name} of {file} is missing in row {row}{_cure(column[row])}.")
    if column.dtype.kind in "biuf":
        return column
    if column.dtype.kind == "U":
        with suppress(ValueError, OverflowError):
            return column.astype(np.int64)  # as floats, long numbers that differ in their last digits would be equal
    numbers = _numbers(column)
    return np.asarray([str(value).strip() for value in column]) if numbers is None else numbers


def _refuse_missing(name: str, column: np.ndarray, file: str) -> None:
    missing = np.flatnonzero(is_missing(column))
    if missing.size:
        row = missing[0]
        raise InputError(f"column {name} of {file} has a missing value in row {row}{_cure(column[row])}.")
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        row = np.flatnonzero(np.isinf(column))[0]
        raise InputError(f"column {name} of {file} must be finite, got {column[row]} in row {row}; fill or drop it.")


def _cure(value: Any) -> str:
    """What to do about a missing value, which is shown if it is a word."""
    if isinstance(value, str) and value.strip():
        return f": {str(value)!r} counts as missing; fill it, drop the row, or use another word"
    return "; fill it, or drop the row"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:20]) + (", …" if len(names) > 20 else "") or "none"


def _numbers(column: np.ndarray) -> np.ndarray | None:
    """A column as numbers, if all its values are numbers or their text; otherwise None."""
    try:
        if column.dtype.kind in "biufU":
            return column.astype(np.float64)  # reads text as `float` does, without a Python object per value
        return np.asarray([float(str(value)) for value in column], np.float64)
    except ValueError:
        return None


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
