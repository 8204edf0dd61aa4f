"""What a network is: functions of its parameters θ and one context; and one made of any pair of functions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from neuralucb.gradients import Block
from neuralucb.policy import check_slot, slot_shape
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.records import brief

__all__ = ["FirstLayer", "Network", "from_functions"]


@brief
class Network(NamedTuple):
    """Functions of parameters and one arm's context; `mlp` makes one, and `from_functions` of any library's.

    Example:
        >>> from neuralucb.networks import mlp
        >>> network = mlp(dim=3, width=4, depth=2)
        >>> theta = network.init(jax.random.key(0))
        >>> network.apply(theta, jnp.ones(3, jnp.float32)).shape  # one number
        ()
    """

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
    """its first layer, separate from the others, where an encoding computes that differently"""
    last_layer: Callable[[Any, Any], Any] | None = None
    """θ, x -> features of the last hidden layer, in which f is linear: a vector, or a `Block` with one vector per arm.

    NeuralLinear and its kin regress on them; `estimators.features.last_layer` makes `Features` of them.
    """


@brief
class FirstLayer(NamedTuple):
    """A network around its first layer, W_1.

    Example:
        >>> from neuralucb.networks import mlp
        >>> first = mlp(dim=3, width=4, depth=2).first
        >>> first.prepare(jnp.ones(3, jnp.float32)).shape
        (3,)
    """

    prepare: Callable[[Any], jax.Array]
    """x -> what the first layer sees"""
    finish: Callable[[Any, jax.Array], jax.Array]
    """θ, W_1 x -> f: the layers above the first"""
    backward: Callable[[Any, jax.Array, jax.Array], tuple[jax.Array, Any]]
    """θ, what the first layer sees, W_1 x -> f, g/√m"""
    last: Callable[[Any, jax.Array], jax.Array] | None = None
    """θ, W_1 x -> features of the last hidden layer"""


def from_functions(
    init: Callable[[jax.Array], Any],
    apply: Callable[[Any, Any], jax.Array],
    *,
    example: Any,
    width: int = 1,
    features: Callable[[Any, Any], jax.Array] | None = None,
    arms: int | None = None,
) -> Network:
    """Make a network of any pair of functions.

    Args:
        init: Key -> parameters, any pytree of arrays.
        apply: Parameters, context of one arm -> one number; with `arms` one number per arm.
        example: A context of one arm, whose shapes all contexts must have; with `arms` the x that they share.
        width: m, if the gradient is to be divided by its root as the paper's is.
        features: Parameters, context -> the last hidden layer, a vector in which `apply` is linear; for algorithms
            such as NeuralLinear, which regress on it.
        arms: K, if all arms share one context and `apply` returns K numbers, one per arm; contexts are then
            `Slot(x, arm)`.

    Returns:
        The network, in float32, its gradient by automatic differentiation.

    Raises:
        InputError: If `apply` does not return one number, or one per arm, or `features` not a vector.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> linear = from_functions(
        ...     lambda key: jnp.ones(3, jnp.float32), lambda w, x: w @ x, example=np.zeros(3, np.float32)
        ... )
        >>> float(linear.apply(jnp.ones(3, jnp.float32), np.ones(3, np.float32)))
        3.0
    """
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), example)
    params = jax.eval_shape(init, random.key(0))
    _check_result(jax.eval_shape(apply, params, shapes), arms)
    for leaf in jax.tree.leaves(params):
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            raise InputError(
                f"init must return parameters that are real numbers, got {leaf.dtype} of shape {leaf.shape}; keep "
                "what is not trained out of them, as eqx.partition and nnx.split do."
            )
    if features is not None and len(jax.eval_shape(features, params, shapes).shape) != 1:
        raise InputError(f"features must return a vector, got {jax.eval_shape(features, params, shapes)}; flatten it.")

    def begin(key: jax.Array) -> Any:
        """In float32, also while 64-bit types are on and another library would take them."""
        return jax.tree.map(lambda leaf: leaf.astype("float32") if leaf.dtype == np.float64 else leaf, init(key))

    def value_of(params: Any, context: Any) -> jax.Array:
        if arms is None:
            return apply(params, context).astype("float32").reshape(())
        return apply(params, context.x).astype("float32")[context.arm]

    def tangent(params: Any, context: Any) -> tuple[jax.Array, Any]:
        value, gradient = jax.value_and_grad(value_of)(params, context)
        return value, jax.tree.map(lambda leaf: leaf / jnp.sqrt(jnp.asarray(width, leaf.dtype)), gradient)

    def last_layer(params: Any, context: Any) -> Any:
        assert features is not None
        if arms is None:
            return features(params, context).astype("float32")
        return Block(context.arm, features(params, context.x).astype("float32"), arms)

    def check(context: Any) -> None:
        got = jax.tree.map(lambda leaf: jnp.shape(leaf), context)
        wanted = jax.tree.map(lambda leaf: leaf.shape, shapes)
        if got != wanted:
            raise InputError(f"a context must have the shapes {wanted}, as the example has, got {got}.")

    made = Network(begin, value_of, jax.vmap(value_of, (None, 0)), tangent, shapes, check)
    if features is not None:
        made = made._replace(last_layer=last_layer)
    if arms is None:
        return made
    dim = _dim_of(shapes)
    return made._replace(example=slot_shape(dim), check=check_slot(dim, arms))


def _check_result(result: Any, arms: int | None) -> None:
    shape = getattr(result, "shape", None)
    if arms is None and shape not in ((), (1,)):
        raise InputError(f"apply must return one number for one context, got {result}; squeeze or index its output.")
    if arms is not None and shape != (arms,):
        raise InputError(f"apply must return {arms} numbers, one per arm, got {result}.")


def _dim_of(shapes: Any) -> int:
    shape: tuple[int, ...] = getattr(shapes, "shape", ())
    if len(shape) != 1:
        raise InputError(f"example must be one vector where arms share a context, got {shapes}.")
    return shape[0]
