"""Classification as a bandit: one arm per class, reward 1 for the right one (Zhou et al. 2020, Section 7.2)."""

import hashlib
import math
import warnings
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from neuralucb.policy import Slot
from neuralucb.problems.problem import Problem, Round
from neuralucb.problems.tables import is_missing, read_rows
from neuralucb.runtime.errors import InputError

__all__ = ["SCALINGS", "digest_of", "labelled", "scale_contexts", "scale_rows"]

SCALINGS = ("columns", "standard", "unit", "smooth", "none")


def labelled(
    X: Any,
    y: Any,
    *,
    input_scaling: str = "columns",
    intercept: bool = False,
    repeat: bool = False,
    name: str = "labelled",
    scaling: str | None = None,
) -> Problem:
    """A problem from labelled rows. Each round is a row; each seed plays the rows in a different order.

    Args:
        X: [rows, columns] numbers or words, an array or a DataFrame; columns of words become one-hot, as in a file.
        y: [rows] labels, numbers or words; one arm per class.
        input_scaling: `columns`: columns to mean 0 and standard deviation 1; `standard`: then rows to norm 1, as in the
            paper; `unit`: only rows to norm 1; `smooth`: rows are square images, which are blurred and halved in
            resolution, then scaled to norm 1; `none`.
        intercept: Whether to add a column of ones before rows are scaled: a bias for networks that have none, and it
            keeps some of the row's norm.
        repeat: Whether to start over after the last row; otherwise there are at most as many rounds as rows.
        name: For tables and figures.
        scaling: The old name of `input_scaling`, until 0.3.

    Returns:
        The problem, for `run` or `simulate`.

    Raises:
        InputError: If X or y cannot be used: not a table, missing or infinite values, one class only, …

    Example:
        >>> from neuralucb import labelled, run
        >>> X = np.random.default_rng(0).normal(size=(100, 4))
        >>> result = run("lin-ucb", labelled(X, X[:, 0] > 0), seeds=5)
    """
    if scaling is not None:
        warnings.warn("scaling is now called input_scaling, as everywhere else", DeprecationWarning, stacklevel=2)
        input_scaling = scaling
    rows, labels = _check(X, y)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"y must have at least 2 classes, got {classes.tolist()}; with one there is no choice.")
    if len(classes) > max(2, len(labels) // 2):
        raise InputError(f"y must be classes, got {len(classes)} different values in {len(labels)} rows; group them.")
    made = partial(
        _of_rows, arms=len(classes), input_scaling=input_scaling, intercept=intercept, repeat=repeat, name=name
    )
    return made(rows, codes.astype(np.int32), digest=digest_of(rows, labels))


def scale_contexts(contexts: np.ndarray, scaling: str, *, intercept: bool = False) -> np.ndarray:
    """Contexts scaled as `labelled` says; where each arm has one, (n, K, d), every one of them is a row.

    Raises:
        InputError: If scaling is unknown, or leaves nothing to tell contexts apart.
    """
    rows = contexts.reshape(-1, contexts.shape[-1])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled = scale_rows(rows, scaling, intercept=intercept)
    if scaling in ("columns", "standard") and not intercept and (rows == rows[0]).all():
        raise InputError(
            "X must have a column that varies, but every column is constant, so that all rows are equal; for a problem "
            "without contexts take input_scaling='none'."
        )
    if not np.isfinite(scaled).all() or (rows.any() and not scaled.any()):
        raise InputError(f"X must have values of a size that can be scaled, got values up to {np.abs(rows).max():g}.")
    return scaled.reshape(*contexts.shape[:-1], -1)


def scale_rows(rows: np.ndarray, scaling: str, *, intercept: bool = False) -> np.ndarray:
    """Rows in float32, scaled as `labelled` says; a constant column becomes 0, a row of zeros stays."""
    if scaling not in SCALINGS:
        raise InputError(f"input_scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}.")
    if scaling in ("columns", "standard"):
        constant = rows.max(axis=0) == rows.min(axis=0)  # its computed deviation may not be exactly 0
        deviation = np.where(constant, 1, rows.std(axis=0))
        rows = rows - rows.mean(axis=0)
        rows[:, constant] = 0
        rows /= deviation
    if scaling == "smooth":
        rows = _smooth(rows)
    if intercept:
        rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    if scaling in ("columns", "none"):
        return rows.astype(np.float32)
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(norm > 0, norm, 1)).astype(np.float32)


def digest_of(rows: np.ndarray, labels: np.ndarray) -> str:
    """A digest of the rows before scaling, which may differ between machines in the last bit."""
    digest = hashlib.sha256(np.ascontiguousarray(rows, "<f8").data)
    digest.update(repr((rows.shape, labels.tolist())).encode())
    return digest.hexdigest()[:16]


def _of_rows(rows: np.ndarray, codes: np.ndarray, *, arms: int, digest: str = "", **how: Any) -> Problem:
    """The problem of these rows, whose labels are numbers below `arms`."""
    scaled = scale_contexts(rows, how["input_scaling"], intercept=how["intercept"])
    count, dim = scaled.shape

    def init(key: jax.Array, data: Any) -> jax.Array:
        return random.permutation(key, jnp.arange(count, dtype=jnp.int32))

    def draw(key: jax.Array, data: Any, world: jax.Array, t: jax.Array) -> Round:
        row = world[t % count]
        every = jnp.arange(arms, dtype=jnp.int32)
        x = jnp.broadcast_to(data[0][row], (arms, dim))
        return Round(Slot(x, every), (every == data[1][row]).astype(jnp.float32), jnp.float32(0))

    def take(chosen: np.ndarray) -> Problem:
        return _of_rows(rows[chosen], codes[chosen], arms=arms, **how)

    return Problem(
        dim, arms, init, draw, (scaled, codes), shared=True, limit=None if how["repeat"] else count, name=how["name"],
        digest=digest or digest_of(rows, codes), rows=count, take=take,
    )  # fmt: skip


def _smooth(rows: np.ndarray) -> np.ndarray:
    """Square images, blurred by a Gaussian of one pixel's standard deviation, at half their resolution."""
    side = math.isqrt(rows.shape[1])
    if side * side != rows.shape[1]:
        raise InputError(
            f"input_scaling smooth needs rows that are square images, got {rows.shape[1]} columns; use unit."
        )
    place = np.arange(side)
    near = np.exp(-((place[::2, None] - place) ** 2) / 2)
    near /= near.sum(axis=1, keepdims=True)
    return (near @ rows.reshape(-1, side, side) @ near.T).reshape(len(rows), -1)


def _check(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows in float64 and labels, or the reason why they cannot be used."""
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise InputError("y must not have masked values, which count as missing; fill them, or drop the rows.")
    rows = read_rows(X)
    try:
        labels = np.asarray(y)
    except (TypeError, ValueError) as problem:
        raise InputError(f"y must be an array: {str(problem).rstrip('.')}.") from None
    if rows.ndim != 2 or rows.shape[0] < 2:
        raise InputError(f"X must be a table of at least 2 rows and 1 column, got shape {rows.shape}.")
    if labels.shape != (rows.shape[0],):
        raise InputError(f"y must have one label for each of the {rows.shape[0]} rows of X, got shape {labels.shape}.")
    missing = np.flatnonzero(is_missing(labels))
    if missing.size:
        raise InputError(f"y must not have missing labels, got {str(labels[missing[0]])!r} in row {missing[0]}.")
    return rows, labels.astype(str) if labels.dtype.kind == "O" else labels
