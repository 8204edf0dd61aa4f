"""Data sets by name: files NAME.npz in the cache folder, scikit-learn's bundled sets, and downloads through OpenML."""

import hashlib
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from neuralucb.files import write_whole

__all__ = ["BUNDLED", "SETS", "DataSet", "data_folder", "fetch", "load", "load_file"]


class DataSet(NamedTuple):
    """A data set of the paper's Table 1, and where OpenML keeps it."""

    name: str
    rows: int
    features: int
    classes: int
    openml: int
    """OpenML's number for this very version"""


SETS = {
    each.name: each
    for each in (
        DataSet("covertype", 581_012, 54, 7, 1596),
        DataSet("magic", 19_020, 10, 2, 1120),
        DataSet("shuttle", 58_000, 9, 7, 40685),
        DataSet("mnist", 60_000, 784, 10, 554),
    )
}
"""Table 1. The paper's 8 attributes of statlog leave one of shuttle's 9 out and do not say which. OpenML's mnist has
70 000 rows, the test set included."""

BUNDLED = {"digits": "load_digits", "wine": "load_wine", "breast-cancer": "load_breast_cancer", "iris": "load_iris"}
"""Sets that scikit-learn brings along: no download."""


def data_folder() -> Path:
    """Where data sets are kept: NEURALUCB_DATA, or the user's cache folder."""
    own = os.environ.get("NEURALUCB_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(own) if own else cache / "neuralucb" / "data"


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of a data set by name."""
    if name in BUNDLED:
        return _bundled(name)
    path = data_folder() / f"{name}.npz"
    if not path.exists():
        raise ValueError(
            f"data set {name} is not there; `neuralucb data fetch {name}` downloads it, or put {path} there, "
            "a NumPy file with the keys X and y. NEURALUCB_DATA names another folder."
        )
    return load_file(path, None)


def load_file(path: Path, label: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of a file: .npz with X and y, or .csv or .parquet with a column of labels."""
    try:
        if path.suffix == ".npz":
            return _read_npz(path)
        if path.suffix == ".csv":
            names, columns = _read_csv(path)
        elif path.suffix == ".parquet":
            names, columns = _read_parquet(path)
        else:
            raise ValueError(f"data must be a file .npz, .csv or .parquet, got {path}.")
    except (OSError, EOFError, KeyError, UnicodeDecodeError) as problem:
        raise ValueError(f"{path} cannot be read: {problem}.") from None
    if label not in names:
        raise ValueError(f"label must name a column of {path.name}, got {label!r}; it has: {', '.join(names)}.")
    features = [_encode(name, column) for name, column in zip(names, columns, strict=True) if name != label]
    if not features:
        raise ValueError(f"{path.name} has no column but the label.")
    return np.concatenate(features, axis=1), np.asarray(columns[names.index(label)])


def fetch(name: str, progress: Callable[[int], None] | None = None) -> Path:
    """Download a data set into the folder, check it against Table 1, and return its path; nothing half-made is left.

    progress  is told the bytes downloaded so far, several times a second.
    """
    if name not in SETS:
        raise ValueError(f"data set {name!r} is not known; known: {', '.join(SETS)}.")
    expected, folder = SETS[name], data_folder()
    path = folder / f"{name}.npz"
    try:
        from sklearn.datasets import fetch_openml

        with TemporaryDirectory() as downloads, _watched(Path(downloads), progress), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of every retry; what counts is raised in the end
            X, y = fetch_openml(
                data_id=expected.openml, as_frame=False, return_X_y=True, parser="liac-arff", data_home=downloads
            )
    except ImportError:
        raise ValueError("fetching needs scikit-learn: pip install 'neuralucb[experiments]'.") from None
    except (OSError, ValueError) as problem:
        raise ValueError(
            f"{name} could not be downloaded ({problem}); put {path} there by hand, a NumPy file with the keys X and y."
        ) from None
    X, y = np.asarray(X, np.float32), np.unique(np.asarray(y), return_inverse=True)[1]
    if X.shape[0] < expected.rows or X.shape[1] != expected.features or len(np.unique(y)) != expected.classes:
        raise ValueError(
            f"{name} as downloaded has shape {X.shape} and {len(np.unique(y))} classes, not those of {expected}."
        )
    write_whole(path, lambda part: _save(part, X, y))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".sha256").write_text(f"{digest}  {path.name}\n")
    return path


def _save(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    with path.open("wb") as file:  # a name would be given another ending
        np.savez_compressed(file, X=X, y=y)


@contextmanager
def _watched(folder: Path, progress: Callable[[int], None] | None) -> Iterator[None]:
    """Tell `progress` the bytes in a folder while something fills it."""
    over = Event()

    def watch() -> None:
        while progress is not None and not over.wait(0.2):
            progress(_bytes_in(folder))

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # moved away in this very moment
            total += path.stat().st_size if path.is_file() else 0
    return total


def _bundled(name: str) -> tuple[np.ndarray, np.ndarray]:
    try:
        from sklearn import datasets
    except ImportError:
        raise ValueError(f"{name} comes with scikit-learn: pip install 'neuralucb[experiments]'.") from None
    X, y = getattr(datasets, BUNDLED[name])(return_X_y=True)
    return X, y


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            if "X" in file and "y" in file:
                return file["X"], file["y"]
            keys = ", ".join(file) or "none"
    except (ValueError, BadZipFile, AttributeError):
        raise ValueError(f"{path} cannot be read: it is not a NumPy file of plain arrays, or it is damaged.") from None
    raise ValueError(f"{path} must have the keys X and y, got {keys}.")


def _read_csv(path: Path) -> tuple[list[str], list[np.ndarray]]:
    import csv

    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    if len(rows) < 2:
        raise ValueError(f"{path} must have a line of names and lines of values, got {len(rows)} lines.")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise ValueError(f"{path} line {number} has {len(row)} values, the first has {len(rows[0])}.")
    return rows[0], [np.asarray(column) for column in zip(*rows[1:], strict=True)]


def _read_parquet(path: Path) -> tuple[list[str], list[np.ndarray]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ValueError(f"{path} needs pyarrow: pip install 'neuralucb[experiments]'.") from None
    try:
        table = parquet.read_table(path)
    except ArrowException:
        raise ValueError(f"{path} cannot be read: it is not a Parquet file, or it is damaged.") from None
    return table.column_names, [np.asarray(column.to_numpy()) for column in table.columns]


def _encode(name: str, column: np.ndarray) -> np.ndarray:
    """A column as numbers [rows, 1], or, where it has words, as one-hot [rows, words]; a missing value is refused."""
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)[:, None]
    words: Any = column.astype(str)
    missing = np.flatnonzero(np.isin(words, ("", "None", "nan", "NaN", "NA", "?")))
    if missing.size:
        raise ValueError(f"column {name} has a missing value in row {missing[0]}; fill or drop it.")
    try:
        return words.astype(np.float64)[:, None]
    except ValueError:
        kinds, codes = np.unique(words, return_inverse=True)
        return np.eye(len(kinds))[codes]
