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

from neuralucb.problems.labelled_files import Table, read_table
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.files import write_whole

__all__ = ["ALIASES", "BUNDLED", "SETS", "DataSet", "data_folder", "data_path", "fetch", "find_set", "load"]


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
70 000 rows, the test set included and last; the first 60 000 are kept."""


ALIASES = {"statlog": "shuttle"}
"""the paper's names"""


BUNDLED = {"digits": "load_digits", "wine": "load_wine", "breast-cancer": "load_breast_cancer", "iris": "load_iris"}
"""Sets that scikit-learn brings along: no download."""


def data_folder() -> Path:
    """Where data sets are kept: NEURALUCB_DATA, or the user's cache folder."""
    own = os.environ.get("NEURALUCB_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(own).expanduser() if own else cache / "neuralucb" / "data"


def load(name: str) -> Table:
    """A data set by name."""
    if name in BUNDLED:
        return _bundled(name)
    path = data_path(name)
    if not path.exists():
        raise InputError(
            f"data set {name} is not there; `neuralucb data fetch {name}` downloads it, or put {path} there, "
            "a NumPy file with the keys X and y. NEURALUCB_DATA names another folder."
        )
    return read_table(path, None)


def data_path(name: str) -> Path:
    """Where a data set of Table 1 is, or would be."""
    return data_folder() / f"{find_set(name).name}.npz"


def find_set(name: str) -> DataSet:
    """The data set of that name, or of the paper's name for it; an unknown one lists the known."""
    known = ALIASES.get(name, name)
    if known in BUNDLED:
        raise InputError(f"{name} comes with scikit-learn: there is nothing to fetch, and no file of its own.")
    if known not in SETS:
        raise InputError(f"data set {name!r} is not known; known: {', '.join([*SETS, *ALIASES])}.")
    return SETS[known]


def fetch(name: str, progress: Callable[[int], None] | None = None) -> Path:
    """Download a data set into the folder, check it against Table 1, and return its path; nothing half-made is left.

    A file that is there is left as it is: to fetch it anew, delete it first.

    progress  is told the bytes downloaded so far, several times a second.
    """
    expected, path = find_set(name), data_path(name)
    if path.exists():
        return path
    by_hand = f"put {path} there by hand, a NumPy file with the keys X and y"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent):
            pass  # before the download, not after it
    except OSError as problem:
        raise InputError(
            f"{path.parent} cannot be written ({problem.strerror}); NEURALUCB_DATA names another."
        ) from None
    try:
        from sklearn.datasets import fetch_openml

        with TemporaryDirectory() as downloads, _watched(Path(downloads), progress), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of every retry; what counts is raised in the end
            X, y = fetch_openml(
                data_id=expected.openml, as_frame=False, return_X_y=True, parser="liac-arff", data_home=downloads
            )
        X, y = np.asarray(X, np.float32), np.unique(np.asarray(y), return_inverse=True)[1]
    except ImportError:
        raise InputError("fetching needs scikit-learn: pip install 'neuralucb[experiments]'.") from None
    except Exception as problem:  # of the network, of archives, of the parser: a dozen kinds, and none is ours
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


def _bundled(name: str) -> Table:
    try:
        from sklearn import datasets
    except ImportError:
        raise InputError(f"{name} comes with scikit-learn: pip install 'neuralucb[experiments]'.") from None
    X, y = getattr(datasets, BUNDLED[name])(return_X_y=True)
    return Table(name, [str(column) for column in range(X.shape[1])], list(X.T), y)
