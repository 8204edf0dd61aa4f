"""The paper's synthetic problems h1, h2, h3 (Section 7.1): contexts in the unit ball, unit Gaussian noise."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import random

from neuralucb.problems.problem import Problem, Round
from neuralucb.runtime.errors import InputError

__all__ = ["FUNCTIONS", "World", "synthetic", "unit_ball"]


class World(NamedTuple):
    """What is drawn once per seed: a uniform in the unit ball, A with entries N(0, 1)."""

    a: jax.Array
    A: jax.Array


def _h1(world: World, x: jax.Array) -> jax.Array:
    return 10 * (x @ world.a) ** 2


def _h2(world: World, x: jax.Array) -> jax.Array:
    return jnp.sum((world.A @ x) ** 2)


def _h3(world: World, x: jax.Array) -> jax.Array:
    return jnp.cos(3 * (x @ world.a))


FUNCTIONS = {"h1": _h1, "h2": _h2, "h3": _h3}
"""h1 = 10(xᵀa)², h2 = xᵀAᵀAx, h3 = cos(3xᵀa)."""


def synthetic(function: str, *, dim: int = 20, arms: int = 4, noise: float = 1.0) -> Problem:
    """A synthetic problem of the paper: reward h(x) + noise, one context x per arm, uniform in the unit ball.

    Args:
        function: "h1" for 10(xᵀa)², "h2" for xᵀAᵀAx, "h3" for cos(3xᵀa); a and A are drawn once per seed.
        dim: d, numbers in a context.
        arms: K.
        noise: Standard deviation of the Gaussian noise.

    Returns:
        The problem, for `run` or `simulate`.

    Raises:
        InputError: If an argument is out of range.

    Example:
        >>> from neuralucb import run, synthetic
        >>> result = run("lin-ucb", synthetic("h1", dim=8), rounds=1000, seeds=4)
    """
    if function not in FUNCTIONS:
        raise InputError(f"function must be one of {', '.join(FUNCTIONS)}, got {function!r}.")
    if dim < 1:
        raise InputError(f"dim must be at least 1, got {dim}.")
    if arms < 2:
        raise InputError(f"arms must be at least 2, got {arms}; with one there is no choice.")
    if not noise >= 0:
        raise InputError(f"noise must be at least 0, got {noise}.")
    h = FUNCTIONS[function]

    def init(key: jax.Array, data: Any) -> World:
        key_vector, key_matrix = random.split(key)
        return World(unit_ball(key_vector, (), dim), random.normal(key_matrix, (dim, dim), dtype=jnp.float32))

    def draw(key: jax.Array, data: Any, world: World, t: jax.Array) -> Round:
        key_contexts, key_noise = random.split(key)
        contexts = unit_ball(key_contexts, (arms,), dim)
        expected = jax.vmap(h, (None, 0))(world, contexts)
        return Round(contexts, expected, jnp.float32(noise) * random.normal(key_noise, dtype=jnp.float32))

    return Problem(dim, arms, init, draw, name=function)


def unit_ball(key: jax.Array, shape: tuple[int, ...], dim: int) -> jax.Array:
    """Uniform in the unit ball: a uniform direction, and a radius whose power d is uniform."""
    key_direction, key_radius = random.split(key)
    direction = random.normal(key_direction, (*shape, dim), dtype=jnp.float32)
    direction = direction / jnp.linalg.norm(direction, axis=-1, keepdims=True)
    return direction * random.uniform(key_radius, (*shape, 1), dtype=jnp.float32) ** (1 / dim)
