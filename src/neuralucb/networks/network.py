"""What a network is: functions of its parameters θ and one context; and one made of any pair of functions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.records import brief

__all__ = ["FirstLayer", "Network", "from_functions"]


@brief
class Network(NamedTuple):
    """Functions of parameters and one arm's context."""

    init: Callable[[jax.Array], Any]
    """key -> θ_0"""
    apply: Callable[[Any, Any], jax.Array]
    """θ, x -> f(x; θ)"""
    apply_many: Callable[[Any, Any], jax.Array]
    """θ, x of many rows -> f of each; for training"""
    tangent: Callable[[Any, Any], tuple[jax.Array, Any]]
    """θ, x -> f(x; θ), and g(x; θ)/√m, the one form in which the paper uses its gradient: arrays and `Outer`"""
    example: Any
    """the shape of one context"""
    check: Callable[[Any], None]
    """Raises InputError for a context of the wrong shape."""
    first: "FirstLayer | None" = None
    """its first layer apart from the others, where an encoding may compute that differently"""


@brief
class FirstLayer(NamedTuple):
    """A network around its first layer, W_1."""

    prepare: Callable[[Any], jax.Array]
    """x -> what the first layer sees"""
    finish: Callable[[Any, jax.Array], jax.Array]
    """θ, W_1 x -> f: the layers above the first"""
    backward: Callable[[Any, jax.Array, jax.Array], tuple[jax.Array, Any]]
    """θ, what the first layer sees, W_1 x -> f, g/√m"""


def from_functions(
    init: Callable[[jax.Array], Any], apply: Callable[[Any, Any], jax.Array], *, example: Any, width: int = 1
) -> Network:
    """Make a network of any pair of functions.

    Args:
        init: key -> parameters, any pytree of arrays.
        apply: parameters, context of one arm -> one number.
        example: A context of one arm, whose shapes all contexts must have.
        width: m, if the gradient is to be divided by its root as the paper's is.

    Returns:
        The network, in float32, its gradient by automatic differentiation.

    Raises:
        InputError: If `apply` does not return one number.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> linear = from_functions(
        ...     lambda key: jnp.ones(3, jnp.float32), lambda w, x: w @ x, example=np.zeros(3, np.float32)
        ... )
        >>> float(linear.apply(jnp.ones(3, jnp.float32), np.ones(3, np.float32)))
        3.0
    """
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), example)
    result = jax.eval_shape(lambda key: apply(init(key), example), random.key(0))
    if getattr(result, "shape", None) != ():
        raise InputError(f"apply must return one number for one context, got {result}; squeeze or index its output.")

    def begin(key: jax.Array) -> Any:
        """In float32, also while 64-bit types are on and another library would take them."""
        return jax.tree.map(lambda leaf: leaf.astype("float32") if leaf.dtype == np.float64 else leaf, init(key))

    def value_of(params: Any, context: Any) -> jax.Array:
        return apply(params, context).astype("float32")

    def tangent(params: Any, context: Any) -> tuple[jax.Array, Any]:
        value, gradient = jax.value_and_grad(value_of)(params, context)
        return value, jax.tree.map(lambda leaf: leaf / jnp.sqrt(jnp.asarray(width, leaf.dtype)), gradient)

    def check(context: Any) -> None:
        got = jax.tree.map(lambda leaf: jnp.shape(leaf), context)
        wanted = jax.tree.map(lambda leaf: leaf.shape, shapes)
        if got != wanted:
            raise InputError(f"a context must have the shapes {wanted}, as the example has, got {got}.")

    return Network(begin, value_of, jax.vmap(value_of, (None, 0)), tangent, shapes, check)
