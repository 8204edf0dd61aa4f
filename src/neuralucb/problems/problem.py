"""What a problem is: a world drawn once per seed, and rounds drawn from it."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.policy import Slot
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.records import brief

__all__ = ["Problem", "Round", "check_problem", "reveal"]


@brief
class Round(NamedTuple):
    """One round, before an arm is chosen: reward = expected[arm] + noise.

    Example:
        >>> one = Round(jnp.eye(2), expected=jnp.array([0.2, 0.7]), noise=jnp.float32(0))
        >>> float(one.expected.max() - one.expected[0]).__round__(1)  # the regret of playing arm 0
        0.5
    """

    contexts: Any
    """A pytree with a leading axis of arms."""
    expected: jax.Array
    """[K] expected reward of each arm; regret is measured on these, never on noisy rewards."""
    noise: jax.Array


@brief
class Problem(NamedTuple):
    """Where contexts and rewards come from.

    Its functions are pure: contexts and noise depend on the seed and the round alone, so that every algorithm meets
    the same problem. Make one with `synthetic`, `labelled`, `rewards` or `from_function`, or with functions of your
    own.

    Example:
        >>> def draw(key, data, world, t):
        ...     contexts = jax.random.normal(key, (4, 5))
        ...     return Round(contexts, contexts @ world, jnp.float32(0))
        >>> problem = Problem(dim=5, arms=4, init=lambda key, data: jax.random.normal(key, (5,)), draw=draw)
    """

    dim: int
    """d, numbers in a context"""
    arms: int
    """K"""
    init: Callable[[jax.Array, Any], Any]
    """key, data -> world"""
    draw: Callable[[jax.Array, Any, Any, jax.Array], Round]
    """key of this round, data, world, round t (from 0) -> Round"""
    data: Any = ()
    """arrays that all seeds share, such as a data set; not part of the world, which every lane has a copy of"""
    shared: bool = False
    """whether contexts are a `Slot`: one x that all arms share"""
    limit: int | None = None
    """the most rounds it can be played; None for no limit"""
    name: str = "problem"
    """for tables and figures"""
    digest: str = ""
    """of the data, to tell two data sets of one name apart; empty without data"""
    unit: float = 1.0
    """what a reward of 1 is worth in the data's unit, in which regret is reported; algorithms see rewards without it"""
    rows: int | None = None
    """how many rows a data set has, of which each round is one; None where rounds are drawn"""
    take: Callable[[np.ndarray], Any] | None = None
    """row numbers -> the `Problem` made from these rows alone, scaling included; None where rounds are drawn"""

    @property
    def shared_by(self) -> int | None:
        """The number of arms, if they share one context; None if there is one context per arm."""
        return self.arms if self.shared else None


def check_problem(problem: Problem) -> None:
    """Compare what `draw` gives with what the problem promises. Only shapes are computed: no number, no memory.

    Args:
        problem: A problem of your own.

    Raises:
        InputError: If `init` or `draw` fails, if arms, contexts or rewards have other shapes, or if memory does not
            hold one round; the message says what was given and what was expected.

    Example:
        >>> from neuralucb.problems import check_problem, synthetic
        >>> check_problem(synthetic("h1", dim=8))
    """
    world, now = _shapes(problem)
    name = problem.name
    if not isinstance(now, Round):
        raise InputError(f"draw of {name} must return a Round, got {type(now).__name__}.")
    _check_contexts(problem, now.contexts)
    for what, array, shape in (("expected", now.expected, (problem.arms,)), ("noise", now.noise, ())):
        if getattr(array, "shape", None) != shape:
            wanted = f"one number per arm, shape {shape}" if shape else "one number, shape ()"
            raise InputError(f"draw of {name} must give {what} as {wanted}, got {_described(array)}.")
    require_memory(
        _size(now) + _size(world),
        what=f"one round of {name}, with {problem.arms} arms of {problem.dim} numbers,",
        cure="take fewer arms, or fewer numbers per context",
    )


def reveal(problem: Problem) -> Problem:
    """Show the expected rewards of a problem to an algorithm: the oracle's contexts.

    Args:
        problem: Any problem.

    Returns:
        The same problem, in which each arm's context is paired with its expected reward.

    Example:
        >>> from neuralucb.problems import reveal, synthetic
        >>> problem = reveal(synthetic("h1"))
    """

    def draw(key: jax.Array, data: Any, world: Any, t: jax.Array) -> Round:
        now = problem.draw(key, data, world, t)
        return now._replace(contexts=(now.contexts, now.expected))

    return problem._replace(draw=draw)


def _shapes(problem: Problem) -> tuple[Any, Any]:
    """The shapes of a world and of a round."""
    key, t = jax.eval_shape(jax.random.key, 0), jax.ShapeDtypeStruct((), jnp.int32)
    function = "init"
    try:
        with jax.enable_x64(True):  # as in a run
            data = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), jnp.result_type(leaf)), problem.data)
            world = jax.eval_shape(problem.init, key, data)
            function = "draw"
            return world, jax.eval_shape(problem.draw, key, data, world, t)
    except InputError:
        raise
    except Exception as wrong:  # whatever the caller's function raises
        raise InputError(
            f"{function} of {problem.name} must be a function that JAX can trace; it raised {type(wrong).__name__}: "
            f"{str(wrong).partition(chr(10))[0]}"
        ) from wrong


def _check_contexts(problem: Problem, contexts: Any) -> None:
    name, arms, dim = problem.name, problem.arms, problem.dim
    if isinstance(contexts, Slot) != problem.shared and (isinstance(contexts, Slot) or hasattr(contexts, "shape")):
        wanted = "a Slot, as shared is True" if problem.shared else "an array (arms, dim), or shared=True with a Slot"
        raise InputError(f"draw of {name} must give contexts as {wanted}, got {_described(contexts)}.")
    leaves = jax.tree.leaves(contexts)
    given = {leaf.shape[0] if leaf.shape else None for leaf in leaves}
    if given != {arms}:
        raise InputError(
            f"draw of {name} must give contexts of {arms} arms, as the problem promises, got {_described(contexts)}; "
            "set arms to what draw gives."
        )
    vector = contexts.x if isinstance(contexts, Slot) else contexts
    if hasattr(vector, "shape") and math.prod(vector.shape[1:]) != dim:
        raise InputError(
            f"draw of {name} must give contexts of {dim} numbers per arm, as the problem promises, got "
            f"{_described(contexts)}; set dim to what draw gives."
        )


def _described(tree: Any) -> str:
    shapes = [str(getattr(leaf, "shape", type(leaf).__name__)) for leaf in jax.tree.leaves(tree)]
    kind = type(tree).__name__ if not hasattr(tree, "shape") else "an array"
    return f"{kind} of shape {', '.join(shapes) or 'none'}"


def _size(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
