"""A table of rewards as a problem: what every arm would have paid in every row, in any unit."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from neuralucb.policy import Slot
from neuralucb.problems.labelled import digest_of, scale_rows
from neuralucb.problems.problem import Problem, Round
from neuralucb.runtime.errors import InputError

__all__ = ["rewards"]

LARGEST = 1e30
"""Beyond it squares and sums overflow float32."""


def rewards(
    X: Any,
    R: Any,
    *,
    noise: float = 0.0,
    input_scaling: str = "standard",
    intercept: bool = False,
    repeat: bool = False,
    name: str = "rewards",
) -> Problem:
    """A problem from contexts X and a table R of what each arm pays in each row.

    Each seed plays the rows in an order of its own. Regret is measured on R, in R's unit.

    Args:
        X: contexts, (n, d) where all arms share one, or (n, K, d) where each arm has its own.
        R: expected rewards (n, K), finite, of any scale.
        noise: standard deviation of the Gaussian noise added to every observed reward.
        input_scaling: `standard`: columns to mean 0 and deviation 1, then rows to norm 1; `unit`: rows alone; `none`.
        intercept: add a column of ones before rows are scaled.
        repeat: begin again after the last row; otherwise rounds must not exceed the rows.
        name: for tables and figures.

    Returns:
        The problem, for `run`, `compare` and `simulate`.

    Raises:
        InputError: for shapes that do not fit, or values that are missing or not finite.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> R = np.stack([100 * X[:, 0], 50 * X[:, 1] ** 2], axis=1)
        >>> rewards(X, R, noise=10.0).arms
        2
    """
    contexts, table = _check(X, R)
    if not (isinstance(noise, int | float) and 0 <= noise < np.inf):
        raise InputError(f"noise must be a standard deviation, at least 0, got {noise!r}.")
    count, arms = table.shape
    shared = contexts.ndim == 2
    scaled = _scale(contexts, input_scaling, intercept)
    dim = scaled.shape[-1]
    every = np.arange(arms, dtype=np.int32)

    def init(key: jax.Array, data: Any) -> jax.Array:
        return random.permutation(key, jnp.arange(count, dtype=jnp.int32))

    def draw(key: jax.Array, data: Any, world: jax.Array, t: jax.Array) -> Round:
        row = world[t % count]
        x = jnp.asarray(data[0])[row]
        seen = Slot(jnp.broadcast_to(x, (arms, dim)), jnp.asarray(every)) if shared else x
        added = jnp.float32(noise) * random.normal(key, dtype=jnp.float32)
        return Round(seen, jnp.asarray(data[1])[row], added)

    digest = digest_of(contexts.reshape(count, -1), table)
    limit = None if repeat else count
    data = (scaled, table.astype(np.float32))
    return Problem(dim, arms, init, draw, data, shared=shared, limit=limit, name=name, digest=digest)


def _scale(contexts: np.ndarray, input_scaling: str, intercept: bool) -> np.ndarray:
    """Rows scaled by name; where each arm has its own context, every one of them is a row."""
    if input_scaling == "smooth":
        raise InputError("input_scaling must be standard, unit or none for a table of rewards, got 'smooth'.")
    flat = contexts.reshape(-1, contexts.shape[-1])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled = scale_rows(flat, input_scaling, intercept=intercept)
    if not np.isfinite(scaled).all():
        raise InputError(f"X must be of a size that can be scaled, got values up to {np.abs(flat).max():g}.")
    return scaled.reshape(*contexts.shape[:-1], -1)


def _check(X: Any, R: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        contexts, table = np.asarray(X, np.float64), np.asarray(R, np.float64)
    except (TypeError, ValueError):
        raise InputError("X and R must be arrays of numbers; encode words and dates first.") from None
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise InputError(f"R must be (n, K) with at least one row and two arms, got shape {table.shape}.")
    n, arms = table.shape
    fits = contexts.ndim == 2 or (contexts.ndim == 3 and contexts.shape[1] == arms)
    if not fits or contexts.shape[0] != n or contexts.shape[-1] < 1:
        raise InputError(
            f"X must be ({n}, d) or ({n}, {arms}, d), as R has {n} rows and {arms} arms, got {contexts.shape}."
        )
    for name, values in (("X", contexts), ("R", table)):
        if not np.isfinite(values).all():
            place = tuple(int(each) for each in np.argwhere(~np.isfinite(values))[0])
            raise InputError(f"{name} must be finite, got {values[place]} at {place}; fill or drop the row.")
        if np.abs(values).max(initial=0) > LARGEST:
            raise InputError(f"{name} must fit float32, got {np.abs(values).max():g}; take a larger unit.")
    return contexts, table
