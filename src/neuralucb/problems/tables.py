"""A table of columns: words become one-hot; what is missing, nested or a date is refused with its column and row."""

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, time, timedelta
from typing import Any, NamedTuple

import numpy as np

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.memory import require_memory

__all__ = [
    "Features",
    "Table",
    "is_missing",
    "listed",
    "read_labels",
    "read_numbers",
    "read_rows",
    "refuse_missing",
]

DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
"""A number as many countries write it, which would become a category of its own."""

MISSING = ("", "?", "<na>", "na", "n/a", "nan", "nat", "none", "null")
"""Words that stand for a missing value, in lower or upper case."""

MOST_CATEGORIES = 100
"""A column with more different words than this holds names, not categories, and is refused."""

BYTES_PER_NUMBER = 20
"""Memory per number while rows are scaled: two copies in float64, and one in float32, which is kept."""

MOMENTS = (date, time, timedelta, np.datetime64, np.timedelta64)

NESTED = (list, tuple, set, dict, bytes, np.ndarray)


class Features(NamedTuple):
    """Columns as numbers."""

    names: tuple[str, ...]
    """of each column; colour=red for the column that is 1 where colour is red"""
    rows: np.ndarray
    """[rows, columns], or [rows, arms, columns] where each arm has a context"""


class Table(NamedTuple):
    """Columns by name, and those taken out of them, such as labels. The columns of a matrix are named 0, 1, …"""

    file: str
    names: list[str]
    columns: list[np.ndarray]
    """[rows] each, or [rows, arms] where each arm has a context"""
    taken: Mapping[str, np.ndarray] = {}
    """by name"""
    nested: tuple[tuple[str, str], ...] = ()
    """columns of lists, records or bytes, with their types: these can only be dropped"""

    def rows(self, drop: str = "none") -> np.ndarray:
        """The columns as numbers, words as one-hot, without the columns to drop (names joined by +)."""
        return self.features(drop).rows

    def features(self, drop: str = "none") -> Features:
        """The same, with a name for each column of numbers."""
        dropped = set() if drop == "none" else set(drop.split("+"))
        unknown = sorted(dropped - set(self.names))
        if unknown:
            has = listed(self.names)
            raise InputError(f"drop must name columns of {self.file}, got {', '.join(unknown)}; it has: {has}.")
        kept = [(name, column) for name, column in zip(self.names, self.columns, strict=True) if name not in dropped]
        for name, kind in self.nested:
            if name not in dropped:
                raise InputError(
                    f"column {name} of {self.file} must be numbers or words, got {kind}; "
                    f"{_leave_out(name, self.file)}, or split it into several columns."
                )
        if not kept:
            raise InputError(f"{self.file} has no column left for the context; drop fewer.")
        if all(column.dtype.kind in "biuf" for _, column in kept):
            for name, column in kept:
                refuse_missing(f"column {name}", column, self.file)
            return Features(tuple(name for name, _ in kept), np.stack([column for _, column in kept], axis=-1))
        encoded = [_encode(name, column, self.file) for name, column in kept]
        names = tuple(name for some, _ in encoded for name in some)
        return Features(names, np.concatenate([rows for _, rows in encoded], axis=1))


def read_rows(X: Any, what: str = "X", *, words: bool = True) -> np.ndarray:
    """Rows in float64 from an array, a list of rows or a DataFrame; words become one-hot, as in a file.

    Args:
        X: [rows, columns] numbers or words, or [rows, arms, columns] numbers.
        what: Its name in messages.
        words: Whether columns may have words that are not numbers.

    Raises:
        InputError: If it is not a table, or has dates, missing or infinite values; or if memory does not hold it.
    """
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise InputError(f"{what} must not have masked values, which count as missing; fill them, or drop the rows.")
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise InputError(f"{what} must be a dense array, got a sparse {type(X).__name__}; give {what}.toarray().")
    frame = _columns_of(X)
    try:
        rows = np.asarray(() if frame is not None else X)
    except (TypeError, ValueError) as problem:
        raise InputError(f"{what} must be an array: {str(problem).rstrip('.')}.") from None
    shape = rows.shape if frame is None else (len(X), len(frame))
    if len(shape) not in (2, 3) or 0 in shape:
        raise InputError(f"{what} must be a table of rows and columns, got shape {shape}.")
    require_memory(
        BYTES_PER_NUMBER * math.prod(shape),
        what=f"scaling {what} of {' × '.join(map(str, shape))} numbers",
        cure="take fewer rows or columns",
        host=True,
    )
    if frame is not None or rows.dtype.kind not in "biuf":
        if rows.ndim == 3:
            raise InputError(f"{what} must be numbers where each arm has a context, got {rows.dtype}; encode it first.")
        columns = frame or {str(number): column for number, column in enumerate(rows.T)}
        if not words:
            columns = {name: read_numbers(column, f"column {name}", what) for name, column in columns.items()}
        rows = Table(what, list(columns), list(columns.values())).rows()
    with np.errstate(over="ignore"):  # of long doubles: infinite, and refused below
        rows = rows.astype(np.float64)
    if not np.isfinite(rows).all():
        row, *arm, column = np.argwhere(~np.isfinite(rows))[0]
        place = f"row {row}, arm {arm[0]}, column {column}" if arm else f"row {row}, column {column}"
        raise InputError(f"{what} must be finite, got {rows[row, *arm, column]} in {place}; fill or drop it.")
    return rows


def read_labels(column: np.ndarray, name: str, file: str) -> np.ndarray:
    """A column of labels, as numbers if all are written as numbers, so that 1 and 1.0 are one class."""
    refuse_missing(name, column, file)
    if column.dtype.kind in "biuf":
        return column
    if column.dtype.kind == "U":
        with suppress(ValueError, OverflowError):
            return column.astype(np.int64)  # as floats, long numbers that differ in their last digits would be equal
    numbers = _numbers(column)
    return np.asarray([str(value).strip() for value in column]) if numbers is None else numbers


def read_numbers(column: np.ndarray, name: str, file: str) -> np.ndarray:
    """A column of finite numbers in float64."""
    refuse_missing(name, column, file)
    numbers = None if column.dtype.kind in "mMc" else _numbers(column)
    if numbers is None:
        raise InputError(f"{name} of {file} must be numbers, got {str(_first_word(column))!r}.")
    refuse_missing(name, numbers, file)
    return numbers


def is_missing(values: np.ndarray) -> np.ndarray:
    """Which values are missing: NaN, None, NaT, and words that stand for them."""
    if values.dtype.kind in "biu":
        return np.zeros(values.shape, bool)
    if values.dtype.kind in "fc":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    return np.asarray([str(value).strip().lower() in MISSING for value in values], bool)


def refuse_missing(name: str, column: np.ndarray, file: str) -> None:
    """Raise InputError, with the row, if a value of a column is missing or infinite."""
    missing = np.argwhere(is_missing(column))
    if missing.size:
        value = column[tuple(missing[0])]
        verb = "is missing" if name.startswith("label") else "has a missing value"
        raise InputError(f"{name} of {file} {verb} in row {missing[0][0]}{_cure(value)}.")
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        place = np.argwhere(np.isinf(column))[0]
        value = column[tuple(place)]
        raise InputError(f"{name} of {file} must be finite, got {value} in row {place[0]}; fill or drop it.")


def listed(names: list[str]) -> str:
    """The first names, for messages."""
    return ", ".join(names[:20]) + (", …" if len(names) > 20 else "") or "none"


def _columns_of(X: Any) -> dict[str, np.ndarray] | None:
    """The columns of a DataFrame of pandas or polars, each with its own type; None for anything else."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        names, columns = X.columns, [np.asarray(X.iloc[:, place]) for place in range(len(X.columns))]
    elif hasattr(X, "get_columns"):
        names, columns = X.columns, [each.to_numpy() for each in X.get_columns()]
    else:
        return None
    named = {str(name): column for name, column in zip(names, columns, strict=True)}
    if len(named) < len(columns):
        twice = sorted({str(name) for name in names if [str(other) for other in names].count(str(name)) > 1})
        raise InputError(f"X has more than one column named {', '.join(twice)}; rename them.")
    return named


def _encode(name: str, column: np.ndarray, file: str) -> tuple[list[str], np.ndarray]:
    """A column of numbers as [rows, 1], a column of words as one-hot [rows, categories]; and their names."""
    kind = _refused_kind(column)
    if kind is not None:
        raise InputError(f"column {name} of {file} must be numbers or words, got {kind}; {_leave_out(name, file)}.")
    numbers = _numbers(column)
    if numbers is not None and np.isfinite(numbers).all():
        return [name], numbers[:, None]
    for written in (column, numbers):
        if written is not None:
            refuse_missing(f"column {name}", written, file)
    words: Any = np.asarray([str(value).strip() for value in column])
    wrong = [row for row, word in enumerate(words) if _number(word) is None]
    if 2 * len(wrong) < len(words):
        raise InputError(f"column {name} of {file} has {str(words[wrong[0]])!r} among numbers, in row {wrong[0]}.")
    if all(DECIMAL_COMMA.fullmatch(words[row]) for row in wrong):
        first = str(words[wrong[0]])
        raise InputError(
            f"column {name} of {file} has {first!r} in row {wrong[0]}, and others with a comma: write numbers as "
            f"{first.replace(',', '.')}, and categories with a letter."
        )
    categories, codes = np.unique(words, return_inverse=True)
    if len(categories) > MOST_CATEGORIES:
        raise InputError(
            f"column {name} of {file} has {len(categories)} different words, more than the {MOST_CATEGORIES} that are "
            f"allowed for categories; {_leave_out(name, file)}, or encode it yourself."
        )
    return [f"{name}={category}" for category in categories], np.eye(len(categories))[codes]


def _refused_kind(column: np.ndarray) -> str | None:
    """What a column holds, if it is neither numbers nor words."""
    if column.dtype.kind not in "biufOUST":
        return str(column.dtype)
    if column.dtype.kind != "O":
        return None
    for value in column:
        if isinstance(value, MOMENTS) and not is_missing(np.asarray([value], object))[0]:
            return f"dates or times ({value})"
        if type(value).__name__ == "Period":
            return f"periods of time ({value})"
        if isinstance(value, NESTED):
            return type(value).__name__
    return None


def _leave_out(name: str, file: str) -> str:
    """How to do without a column: of a file there is a setting for it."""
    return "leave the column out" if file in ("X", "R") else f"drop it (drop={name})"


def _cure(value: Any) -> str:
    """What to do about a missing value, which is shown if it is a word."""
    if isinstance(value, str) and value.strip():
        return f": {str(value)!r} counts as missing; fill it, drop the row, or use another word"
    return "; fill it, or drop the row"


def _numbers(column: np.ndarray) -> np.ndarray | None:
    """A column as numbers, if all its values are numbers or their text; otherwise None."""
    try:
        if column.dtype.kind in "biufU":
            return column.astype(np.float64)  # reads text as `float` does, without a Python object per value
        return np.asarray(
            [float(value if isinstance(value, bool | np.bool_) else str(value)) for value in column], np.float64
        )
    except ValueError:
        return None


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _first_word(column: np.ndarray) -> Any:
    return next((value for value in column if _number(str(value)) is None), column[0])
