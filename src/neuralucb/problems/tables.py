"""Files of labelled rows: .npz with X and y, .csv and .parquet with a column of labels."""

import csv
import zlib
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

__all__ = ["Table", "is_missing", "read_table"]

MISSING = ("", "?", "na", "n/a", "nan", "nat", "none", "null")
"""Words for nothing, in any case."""
MOST_KINDS = 100
"""A column of words becomes one of ones and zeros for each word; more words than this are names, not categories."""
READ = {".npz", ".csv", ".parquet"}


class Table(NamedTuple):
    """What a file holds: columns by name, and labels. The columns of a matrix are named 0, 1, …"""

    file: str
    names: list[str]
    columns: list[np.ndarray]
    labels: np.ndarray
    nested: tuple[tuple[str, str], ...] = ()
    """columns of lists, records or bytes and what they hold: all that can be done with them is to drop them"""

    def rows(self, drop: str = "none") -> np.ndarray:
        """The columns as numbers, without those dropped (names with + between); words as one-hot."""
        gone = set() if drop == "none" else set(drop.split("+"))
        unknown = sorted(gone - set(self.names))
        if unknown:
            shown = ", ".join(self.names[:20]) + (", …" if len(self.names) > 20 else "")
            raise ValueError(f"drop must name columns of {self.file}, got {', '.join(unknown)}; it has: {shown}.")
        kept = [(name, column) for name, column in zip(self.names, self.columns, strict=True) if name not in gone]
        for name, kind in self.nested:
            if name not in gone:
                raise ValueError(
                    f"column {name} of {self.file} must be numbers or words, got {kind}; drop it with drop={name}, or "
                    "write its parts as columns of their own."
                )
        if not kept:
            raise ValueError(f"{self.file} has no column left but the label; drop fewer.")
        if all(column.dtype.kind in "biuf" for _, column in kept):
            return np.stack([column for _, column in kept], axis=1)
        return np.concatenate([_encode(name, column, self.file) for name, column in kept], axis=1)


def read_table(path: Path, label: str | None) -> Table:
    """A file of labelled rows; what cannot be read says why."""
    kind = path.suffix.lower()
    if kind not in READ:
        raise ValueError(f"data must be a file .npz, .csv or .parquet, got {path}.")
    if kind == ".npz" and label is not None:
        raise ValueError(f"label must not be given with a .npz file, whose labels are y, got {label!r}.")
    try:
        if kind == ".npz":
            return _read_npz(path)
        names, columns, nested = _read_csv(path) if kind == ".csv" else _read_parquet(path)
    except (OSError, EOFError, KeyError, UnicodeDecodeError, csv.Error, zlib.error) as problem:
        raise ValueError(f"{path} cannot be read: {problem}.") from None
    if "" in names:
        raise ValueError(
            f"column {names.index('') + 1} of {path.name} has no name; name it, or save the file without it (is it "
            "an index, which pandas writes unless index=False, or a comma at the end of the names?)."
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path.name} has more than one column named {', '.join(twice)}; rename them.")
    if label not in names:
        hint = "; are its values separated by something else than commas?" if len(names) == 1 else ""
        raise ValueError(f"label must name a column of {path.name}, got {label!r}; it has: {', '.join(names)}{hint}.")
    if label in nested:
        raise ValueError(f"label {label} of {path.name} must be numbers or words, got {nested[label]}; name another.")
    place = names.index(label)
    labels = _labels(columns.pop(place), names.pop(place), path.name)
    return Table(path.name, names, columns, labels, tuple(nested.items()))


def is_missing(values: np.ndarray) -> np.ndarray:
    """Which values are no values: NaN, None, NaT, and words for nothing."""
    if values.dtype.kind in "biu":
        return np.zeros(values.shape, bool)
    if values.dtype.kind in "fc":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    return np.asarray([str(value).strip().lower() in MISSING for value in values], bool)


def _read_npz(path: Path) -> Table:
    damaged = f"{path} cannot be read: it is not a NumPy file of plain arrays, or it is damaged."
    try:
        with path.open("rb") as raw:
            file = np.load(raw, allow_pickle=False)
            if isinstance(file, np.ndarray):
                raise ValueError(f"{path} must have the keys X and y, got one array without a name.")
            if "X" not in file or "y" not in file:
                raise ValueError(f"{path} must have the keys X and y, got {', '.join(file) or 'none'}.")
            X, y = file["X"], file["y"]
    except (BadZipFile, AttributeError, TypeError, zlib.error, EOFError):
        raise ValueError(damaged) from None
    except ValueError as problem:
        raise (problem if str(path) in str(problem) else ValueError(damaged)) from None
    if X.ndim != 2:
        raise ValueError(f"X in {path} must be a table of rows and columns, got shape {X.shape}.")
    return Table(path.name, [str(column) for column in range(X.shape[1])], list(X.T), y)


def _read_csv(path: Path) -> tuple[list[str], list[np.ndarray], dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets put a mark before the first name
        reader = csv.reader(file, skipinitialspace=True)
        rows = [(reader.line_num, row) for row in reader if row]
    if len(rows) < 2:
        raise ValueError(f"{path} must have a line of names and lines of values, got {len(rows)} lines.")
    (_, names), *values = rows
    for line, row in values:
        if len(row) != len(names):
            raise ValueError(f"{path} line {line} has {len(row)} values, the first has {len(names)}.")
    columns = [np.asarray(column) for column in zip(*(row for _, row in values), strict=True)]
    return [name.strip() for name in names], columns, {}


def _read_parquet(path: Path) -> tuple[list[str], list[np.ndarray], dict[str, str]]:
    """Names, columns, and those that hold lists, records or bytes, with their types."""
    try:
        from pyarrow import ArrowException, parquet, types
    except ImportError:
        raise ValueError(f"{path} needs pyarrow: pip install 'neuralucb[experiments]'.") from None
    try:
        table = parquet.read_table(path)
    except ArrowException:
        raise ValueError(f"{path} cannot be read: it is not a Parquet file, or it is damaged.") from None
    nested = {
        field.name: str(field.type)
        for field in table.schema
        if types.is_nested(field.type) or types.is_binary(field.type) or types.is_large_binary(field.type)
    }
    columns = [
        np.zeros(len(table)) if name in nested else np.asarray(table.column(index).to_numpy())
        for index, name in enumerate(table.column_names)
    ]
    return list(table.column_names), columns, nested


def _encode(name: str, column: np.ndarray, file: str) -> np.ndarray:
    """A column as numbers [rows, 1], or, where it has words, as one-hot [rows, words]."""
    missing = np.flatnonzero(is_missing(column))
    if missing.size:
        row = missing[0]
        raise ValueError(f"column {name} of {file} has a missing value in row {row}{_cure(column[row])}.")
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)[:, None]
    if column.dtype.kind not in "OUST":
        raise ValueError(
            f"column {name} of {file} must be numbers or words, got {column.dtype}; drop it with drop={name}."
        )
    words: Any = np.asarray([str(value).strip() for value in column])
    wrong = [row for row, word in enumerate(words) if _number(word) is None]
    if not wrong:
        return np.asarray([_number(word) for word in words], np.float64)[:, None]
    if 2 * len(wrong) < len(words):
        raise ValueError(f"column {name} of {file} has {str(words[wrong[0]])!r} among numbers, in row {wrong[0]}.")
    kinds, codes = np.unique(words, return_inverse=True)
    if len(kinds) > MOST_KINDS:
        raise ValueError(
            f"column {name} of {file} has {len(kinds)} different words, more than the {MOST_KINDS} that are taken for "
            f"categories; set drop={name}, or encode it yourself."
        )
    return np.eye(len(kinds))[codes]


def _labels(column: np.ndarray, name: str, file: str) -> np.ndarray:
    """Labels; those written as numbers are numbers, so that 1 and 1.0 are one class."""
    missing = np.flatnonzero(is_missing(column))
    if missing.size:
        row = missing[0]
        raise ValueError(f"label {name} of {file} is missing in row {row}{_cure(column[row])}.")
    if column.dtype.kind in "biuf":
        return column
    words = [str(value).strip() for value in column]
    numbers = [_number(word) for word in words]
    return np.asarray(words) if None in numbers else np.asarray(numbers, np.float64)


def _cure(value: Any) -> str:
    """What to do about a missing value; a word that stands for one is shown."""
    if isinstance(value, str) and value.strip():
        return f": {str(value)!r} is taken for nothing; fill it, drop the row, or write that word otherwise"
    return "; fill it, or drop the row"


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
