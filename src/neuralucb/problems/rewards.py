"""A table of rewards as a problem: what every arm would have paid in every row, in any unit."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from neuralucb.policy import Slot
from neuralucb.problems.labelled import digest_of, scale_contexts
from neuralucb.problems.problem import Problem, Round
from neuralucb.problems.tables import read_rows
from neuralucb.runtime.errors import InputError
from neuralucb.settings import check_deviation

__all__ = ["REWARD_SCALINGS", "rewards"]

REWARD_SCALINGS = ("unit", "none")

LARGEST = 1e30
"""Beyond it squares and sums overflow float32."""

SMALLEST = 1e-30
"""Below it regret, in float32, would be 0."""

MOST_LOST = 0.01
"""Share of the mean difference between arms that rounding may take."""


def rewards(
    X: Any,
    R: Any,
    *,
    noise: float = 0.0,
    reward_scaling: str = "unit",
    input_scaling: str = "columns",
    intercept: bool = False,
    repeat: bool = False,
    name: str = "rewards",
) -> Problem:
    """A problem from contexts X and a table R of what each arm pays in each row.

    Each round is a row; each seed plays the rows in a different order. Regret is measured on R, without the noise. With
    `R = (y[:, None] == classes)` it is `labelled(X, y)`, to the last bit.

    Args:
        X: Contexts: (n, d) where all arms share one, an array or a DataFrame, whose columns of words become one-hot;
            or (n, K, d) where each arm has its own.
        R: Expected rewards (n, K), an array or a DataFrame, finite, of any scale.
        noise: Standard deviation of the Gaussian noise that is added to every observed reward, in R's unit.
        reward_scaling: `unit`: algorithms see rewards and noise divided by the largest |R|, so that their settings mean
            the same in any unit; `none`: as they are. Regret is in R's unit either way.
        input_scaling: `columns`: columns to mean 0 and standard deviation 1; `standard`: then rows to norm 1; `unit`:
            only rows to norm 1; `smooth`: for square images, as in `labelled`; `none`. Where each arm has its own
            context, every context is a row.
        intercept: Whether to add a column of ones before rows are scaled.
        repeat: Whether to start over after the last row; otherwise there are at most as many rounds as rows.
        name: For tables and figures.

    Returns:
        The problem, for `run`, `compare` or `simulate`.

    Raises:
        InputError: If shapes do not fit, if values are missing, infinite or dates, or if memory does not hold them.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> R = np.stack([100 * X[:, 0], 50 * X[:, 1] ** 2], axis=1)
        >>> rewards(X, R, noise=10.0).arms
        2
    """
    if reward_scaling not in REWARD_SCALINGS:
        raise InputError(f"reward_scaling must be one of {', '.join(REWARD_SCALINGS)}, got {reward_scaling!r}.")
    contexts, table = _check(X, R)
    unit = float(np.abs(table).max()) or 1.0 if reward_scaling == "unit" else 1.0
    deviation = check_deviation("noise", noise) / unit
    count, arms = table.shape
    shared = contexts.ndim == 2
    scaled = scale_contexts(contexts, input_scaling, intercept=intercept)
    dim = scaled.shape[-1]

    def init(key: jax.Array, data: Any) -> jax.Array:
        return random.permutation(key, jnp.arange(count, dtype=jnp.int32))

    def draw(key: jax.Array, data: Any, world: jax.Array, t: jax.Array) -> Round:
        row = world[t % count]
        x, expected = data[0][row], data[1][row]
        seen = Slot(jnp.broadcast_to(x, (arms, dim)), jnp.arange(arms, dtype=jnp.int32)) if shared else x
        added = deviation * random.normal(key, dtype=jnp.float32) if deviation else jnp.float32(0)
        return Round(seen, expected, added)

    def take(chosen: np.ndarray) -> Problem:
        return rewards(
            contexts[chosen], table[chosen], noise=noise, reward_scaling=reward_scaling, input_scaling=input_scaling,
            intercept=intercept, repeat=repeat, name=name,
        )  # fmt: skip

    kept = (table / unit).astype(np.float32)
    _refuse_lost_differences(table, kept.astype(np.float64) * unit)
    data, limit = (scaled, kept), None if repeat else count
    digest = digest_of(contexts, np.asarray([digest_of(table, np.empty(0))]))
    return Problem(
        dim, arms, init, draw, data, shared=shared, limit=limit, name=name, digest=digest, unit=unit, rows=count,
        take=take,
    )  # fmt: skip


def _refuse_lost_differences(table: np.ndarray, kept: np.ndarray) -> None:
    """Refuse rewards so far from 0 that float32 rounds away how arms differ: regret would be 0, or noise."""
    gaps, rounded = (each.max(axis=1, keepdims=True) - each for each in (table, kept))
    if np.abs(rounded - gaps).mean() > MOST_LOST * gaps.mean():
        raise InputError(
            f"R must differ between arms by more than float32 rounds away: rewards are up to {np.abs(table).max():g}, "
            f"and arms differ by {gaps.mean():.3g} on average; subtract a constant, such as R.mean(), from all of R."
        )


def _check(X: Any, R: Any) -> tuple[np.ndarray, np.ndarray]:
    """Contexts and rewards in float64, or the reason why they cannot be used."""
    table = read_rows(R, "R", words=False)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InputError(f"R must be (n, K), one column for each of at least 2 arms, got shape {table.shape}.")
    contexts = read_rows(X)
    n, arms = table.shape
    if len(contexts) != n or (contexts.ndim == 3 and contexts.shape[1] != arms):
        raise InputError(
            f"X must be ({n}, d) or ({n}, {arms}, d), as R has {n} rows and {arms} arms, got shape {contexts.shape}."
        )
    if np.abs(table).max() > LARGEST:
        raise InputError(f"R must be at most {LARGEST:g} in size, got {np.abs(table).max():g}; take a larger unit.")
    if 0 < np.abs(table).max() < SMALLEST:
        raise InputError(
            f"R must reach {SMALLEST:g} in size, or be 0, got at most {np.abs(table).max():g}; take a smaller unit."
        )
    return contexts, table
