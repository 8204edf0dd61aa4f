"""A function as a problem: contexts drawn at random, rewards computed from them, also such as change with time."""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import random

from neuralucb.policy import Slot
from neuralucb.problems.problem import Problem, Round
from neuralucb.problems.synthetic import unit_ball
from neuralucb.runtime.errors import InputError
from neuralucb.settings import check_deviation, check_integer

__all__ = ["from_function"]


def from_function(
    h: Callable[..., Any],
    *,
    dim: int,
    arms: int,
    shared: bool = False,
    noise: float = 1.0,
    sample: Callable[[jax.Array], jax.Array] | None = None,
    name: str = "function",
) -> Problem:
    """A problem whose expected rewards are h of each context.

    Args:
        h: The expected reward, written with `jax.numpy`: h(x), or h(x, t) for a problem that changes with the round
            t = 0, 1, …; where arms share one context h(x, arm) or h(x, arm, t).
        dim: Numbers in a context.
        arms: Arms to choose from, at least 2.
        shared: Whether all arms share one context.
        noise: Standard deviation of the Gaussian noise.
        sample: Key -> one context of `dim` numbers; uniform in the unit ball if not given.
        name: For tables and figures.

    Returns:
        The problem, for `run`, `compare` and `simulate`.

    Raises:
        InputError: If h cannot be traced by JAX, takes other arguments, or does not return one number.

    Example:
        >>> import jax.numpy as jnp
        >>> drifting = from_function(lambda x, t: jnp.sin(x[0] + t / 1000), dim=4, arms=3, noise=0.1)
        >>> drifting.arms
        3
    """
    dim, arms, deviation = check_integer("dim", dim, 1), check_integer("arms", arms, 2), check_deviation("noise", noise)
    takes = _count_arguments(h, least=2 if shared else 1)
    one = sample or (lambda key: unit_ball(key, (), dim))

    def reward(x: jax.Array, arm: jax.Array, t: jax.Array) -> jax.Array:
        given = (x, arm, t) if shared else (x, t)
        with jax.numpy_dtype_promotion("standard"):  # t and arm are whole numbers, which h may mix with its context
            return jnp.asarray(h(*given[:takes])).astype(jnp.float32)

    def draw(key: jax.Array, data: Any, world: Any, t: jax.Array) -> Round:
        key_contexts, key_noise = random.split(key)
        every = jnp.arange(arms, dtype=jnp.int32)
        if shared:
            x = jnp.broadcast_to(one(key_contexts).astype(jnp.float32), (arms, dim))
        else:
            x = jax.vmap(one)(random.split(key_contexts, arms)).astype(jnp.float32)
        expected = jax.vmap(reward, (0, 0, None))(x, every, t)
        added = deviation * random.normal(key_noise, dtype=jnp.float32)
        return Round(Slot(x, every) if shared else x, expected, added)

    _check_traceable(draw, arms, dim, shared)
    return Problem(dim, arms, lambda key, data: (), draw, shared=shared, name=name)


def _count_arguments(h: Callable[..., Any], *, least: int) -> int:
    """How many arguments h takes: `least`, or one more for the round."""
    if not callable(h):
        raise InputError(f"h must be a function of a context, got {h!r:.80}.")
    try:
        parameters = inspect.signature(h).parameters.values()
    except (TypeError, ValueError):
        return least
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    required = [each for each in positional if each.default is each.empty]
    count = len(positional) if len(positional) <= least + 1 else len(required)
    if not least <= count <= least + 1:
        wanted = "h(x, arm) or h(x, arm, t)" if least == 2 else "h(x) or h(x, t)"
        raise InputError(f"h must be {wanted}, got {inspect.signature(h)}; shared says whether it is told the arm.")
    return count


def _check_traceable(draw: Callable[..., Round], arms: int, dim: int, shared: bool) -> None:
    try:
        made = jax.eval_shape(draw, random.key(0), (), (), jnp.int32(0))
    except Exception as problem:  # whatever the caller's function raises
        raise InputError(
            f"h and sample must be functions that JAX can trace, with jax.numpy and without `if` on values, got "
            f"{type(problem).__name__}: {str(problem).partition(chr(10))[0]}"
        ) from problem
    x = made.contexts.x if shared else made.contexts
    if x.shape != (arms, dim):
        raise InputError(f"sample must return one context of {dim} numbers, got shape {x.shape[1:]}.")
    if made.expected.shape != (arms,):
        raise InputError(f"h must return one number for one context, got shape {made.expected.shape[1:]}.")
