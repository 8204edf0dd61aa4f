"""Data sets by name: files NAME.npz in the cache folder, scikit-learn's bundled sets, and downloads through OpenML."""

import hashlib
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import NamedTuple

import numpy as np

from neuralucb.problems.table_files import read_table
from neuralucb.problems.tables import Table
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.files import write_whole

__all__ = ["ALIASES", "BUNDLED", "SETS", "DataSet", "data_folder", "data_path", "fetch", "find_set", "load"]


class DataSet(NamedTuple):
    """A data set of the paper's Table 1, and its number at OpenML."""

    name: str
    rows: int
    features: int
    classes: int
    openml: int
    """OpenML's number of this version"""


SETS = {
    each.name: each
    for each in (
        DataSet("covertype", 581_012, 54, 7, 1596),
        DataSet("magic", 19_020, 10, 2, 1120),
        DataSet("shuttle", 58_000, 9, 7, 40685),
        DataSet("mnist", 60_000, 784, 10, 554),
    )
}
"""Table 1. The paper lists 8 attributes of statlog, one fewer than shuttle has, and does not say which is left out.
OpenML's mnist has 70 000 rows, the last of which are the test set; the first 60 000 are kept."""

ALIASES = {"statlog": "shuttle"}
"""The paper's names."""

BUNDLED = {"digits": "load_digits", "wine": "load_wine", "breast-cancer": "load_breast_cancer", "iris": "load_iris"}
"""Data sets that come with scikit-learn, by the function that loads them."""


def data_folder() -> Path:
    """Where data sets are kept: NEURALUCB_DATA, or the user's cache folder."""
    chosen = os.environ.get("NEURALUCB_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(chosen).expanduser() if chosen else cache / "neuralucb" / "data"


def load(name: str) -> Table:
    """A data set by name."""
    if name in BUNDLED:
        return _bundled(name)
    path = data_path(name)
    if not path.exists():
        raise InputError(
            f"data set {name} was not found; `neuralucb data fetch {name}` downloads it, or put a NumPy file with the "
            f"keys X and y at {path}. NEURALUCB_DATA sets another folder."
        )
    return read_table(path, {"label": None})


def data_path(name: str) -> Path:
    """The path of a data set of Table 1, whether or not it exists."""
    return data_folder() / f"{find_set(name).name}.npz"


def find_set(name: str) -> DataSet:
    """The data set of that name, or of the paper's name for it; the error for an unknown name lists the known ones."""
    found = ALIASES.get(name, name)
    if found in BUNDLED:
        raise InputError(f"{name} comes with scikit-learn: there is nothing to fetch, and it has no file here.")
    if found not in SETS:
        raise InputError(f"data set {name!r} is not known; known: {', '.join([*SETS, *ALIASES])}.")
    return SETS[found]


def fetch(name: str, progress: Callable[[int], None] | None = None) -> Path:
    """Download a data set and check it against Table 1. An existing file is kept: to fetch it again, delete it first.

    Args:
        name: Of the data set; `SETS` and `ALIASES` have them.
        progress: Called with the bytes downloaded so far, several times per second.

    Returns:
        The path of the file.

    Raises:
        InputError: If the download fails, is not what Table 1 says, or cannot be written. No incomplete file is left.
    """
    expected, path = find_set(name), data_path(name)
    if path.exists():
        return path
    by_hand = f"put a NumPy file with the keys X and y at {path} yourself"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent):
            pass  # before the download, not after it
    except OSError as problem:
        raise InputError(
            f"{path.parent} cannot be written ({problem.strerror}); NEURALUCB_DATA sets another."
        ) from None
    try:
        from sklearn.datasets import fetch_openml

        with TemporaryDirectory() as downloads, _watched(Path(downloads), progress), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns about every retry; a failure is raised in the end
            X, y = fetch_openml(
                data_id=expected.openml, as_frame=False, return_X_y=True, parser="liac-arff", data_home=downloads
            )
        X, y = np.asarray(X, np.float32), np.unique(np.asarray(y), return_inverse=True)[1]
    except ImportError:
        raise InputError("fetching needs scikit-learn: pip install 'neuralucb[experiments]'.") from None
    except Exception as problem:  # from the network, archives, the parser: a dozen kinds, none of them ours
        raise InputError(
            f"{name} could not be downloaded ({str(problem) or type(problem).__name__}); {by_hand}."
        ) from None
    if expected.name == "mnist":
        X, y = X[: expected.rows], y[: expected.rows]  # the test set comes after the training set
    found = (*X.shape, len(np.unique(y)))
    if found != (expected.rows, expected.features, expected.classes) or not np.isfinite(X).all():
        raise InputError(
            f"{name} as downloaded has {found[0]} rows, {found[1]} features and {found[2]} classes, or values that are "
            f"not finite; Table 1 has {expected.rows}, {expected.features} and {expected.classes}. Nothing was kept; "
            f"{by_hand}."
        )
    write_whole(path, lambda part: _save(part, X, y))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".sha256").write_text(f"{digest}  {path.name}\n")
    return path


def _save(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    with path.open("wb") as file:  # given a path, NumPy would append .npz
        np.savez_compressed(file, X=X, y=y)


@contextmanager
def _watched(folder: Path, progress: Callable[[int], None] | None) -> Iterator[None]:
    """Call `progress` with the bytes in a folder while a download fills it."""
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
        with suppress(OSError):  # moved just now
            total += path.stat().st_size if path.is_file() else 0
    return total


def _bundled(name: str) -> Table:
    """A data set that comes with scikit-learn."""
    try:
        from sklearn import datasets
    except ImportError:
        raise InputError(f"{name} comes with scikit-learn: pip install 'neuralucb[experiments]'.") from None
    X, y = getattr(datasets, BUNDLED[name])(return_X_y=True)
    return Table(name, [str(column) for column in range(X.shape[1])], list(X.T), {"y": y})
