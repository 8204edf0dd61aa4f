"""The paper's dense layers with another step from layer to layer, and with a trained front before them."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.gradients import Outer
from neuralucb.networks.mlp import mlp
from neuralucb.networks.network import FirstLayer, Network
from neuralucb.policy import check_vector
from neuralucb.runtime.records import brief

__all__ = ["Front", "Step", "stack"]

Step: TypeAlias = Callable[[jax.Array, jax.Array | None], jax.Array]
"""W_l h_{l-1}, h_{l-1} (None in the first layer) -> h_l, of the same width

Example:
    >>> def relu(now, before):
    ...     return jax.nn.relu(now)
"""


@brief
class Front(NamedTuple):
    """What is trained before the dense layers, such as embeddings.

    Example:
        >>> doubled = Front(  # nothing is trained; every number is doubled before the dense layers see it
        ...     init=lambda key: (),
        ...     apply=lambda params, x: 2 * x,
        ...     backward=lambda params, x, slope: (),
        ...     size=3,
        ...     arrays=0,
        ... )
    """

    init: Callable[[jax.Array], tuple[jax.Array, ...]]
    """key -> its parameters, a tuple of arrays"""
    apply: Callable[[tuple[jax.Array, ...], jax.Array], jax.Array]
    """parameters, context -> the vector that the dense layers see"""
    backward: Callable[[tuple[jax.Array, ...], jax.Array, jax.Array], tuple[Any, ...]]
    """parameters, context, slope along that vector -> slope along each array: an array, `Outer` or `Block`"""
    size: int
    """numbers in that vector"""
    arrays: int
    """how many arrays its parameters are"""


def stack(dim: int, step: Step, *, front: Front | None = None, **shape: Any) -> Network:
    """f(x; θ) = W_L h_{L-1}, h_l = step(W_l h_{l-1}, h_{l-1}), times √m with `scaling="tangent"`, as `mlp` has it.

    Gradients are by layer, as those of `mlp`: an `Outer` of what the layer sees and the slope along what it computes,
    which automatic differentiation finds.

    Args:
        dim: d, the numbers in a context.
        step: From one hidden layer to the next; ReLU gives `mlp`.
        front: What comes before the first dense layer. Without one, that layer is kept apart for `disjoint`.
        shape: The other arguments of `mlp`: width, depth, initialization, scaling, duplicate, biases, fan_in, dtype.

    Returns:
        The network; its parameters are a tuple: those of the front, then W_1 to W_L.

    Raises:
        InputError: For sizes and names that are not allowed or do not go together.

    Example:
        >>> import jax, numpy as np
        >>> network = stack(4, lambda computed, below: jax.nn.relu(computed), width=8, initialization="symmetric")
        >>> start = float(network.apply(network.init(jax.random.key(0)), np.ones(4, np.float32)))
        >>> abs(start) < 1e-6  # its halves cancel, but for rounding
        True
    """
    plain = mlp(dim if front is None else front.size, **shape)
    assert plain.first is not None
    prepare, ahead = plain.first.prepare, 0 if front is None else front.arrays
    dtype, biases = jnp.dtype(shape.get("dtype", "float32")), shape.get("biases", False)
    layers = jax.eval_shape(plain.init, jax.random.key(0))
    width, depth = layers[0].shape[0], len(layers)
    factor = float(np.sqrt(width)) if shape.get("scaling", "tangent") == "tangent" else 1.0

    def init(key: jax.Array) -> Any:
        if front is None:
            return plain.init(key)
        key_front, key_dense = jax.random.split(key)
        return (*front.init(key_front), *plain.init(key_dense))

    def see(params: Any, context: jax.Array) -> jax.Array:
        """The vector that the dense layers see, before the first prepares it."""
        return context if front is None else front.apply(params[:ahead], context)

    def above(weights: Any, first: jax.Array, offsets: Any) -> tuple[jax.Array, list[jax.Array]]:
        """f without its factor from W_1 x, every layer's result moved by its offset; and what the layers above saw."""
        hidden = step(first + offsets[0], None)
        seen = [with_one(hidden)]
        for matrix, offset in zip(weights[1:-1], offsets[1:], strict=True):
            hidden = step(matrix @ seen[-1] + offset, hidden)
            seen.append(with_one(hidden))
        return weights[-1] @ seen[-1], seen

    def with_one(hidden: jax.Array) -> jax.Array:
        return jnp.concatenate([hidden, jnp.ones(1, dtype)]) if biases else hidden

    def nowhere() -> list[jax.Array]:
        return [jnp.zeros(width, dtype)] * (depth - 1)

    def finish(weights: Any, first: jax.Array) -> jax.Array:
        return jnp.asarray(factor, dtype) * above(weights, first, nowhere())[0]

    def backward(weights: Any, x: jax.Array, first: jax.Array) -> tuple[jax.Array, tuple[Any, ...]]:
        """f and g/√m; the slope along what a layer computes is the one along its offset."""
        slope_of = jax.value_and_grad(lambda offsets: above(weights, first, offsets), has_aux=True)
        (value, seen), slopes = slope_of(nowhere())
        parts = [Outer(slope, below) for slope, below in zip(slopes, [x, *seen[:-1]], strict=True)]
        return jnp.asarray(factor, dtype) * value, (*parts, seen[-1])

    def apply(params: Any, context: jax.Array) -> jax.Array:
        weights = params[ahead:]
        return finish(weights, weights[0] @ prepare(see(params, context)))

    def tangent(params: Any, context: jax.Array) -> tuple[jax.Array, Any]:
        weights = params[ahead:]
        x, back = jax.vjp(prepare, see(params, context))
        value, dense = backward(weights, x, weights[0] @ x)
        if front is None:
            return value, dense
        (slope,) = back(dense[0].left @ weights[0])
        return value, (*front.backward(params[:ahead], context, slope), *dense)

    def last(weights: Any, first: jax.Array) -> jax.Array:
        return above(weights, first, nowhere())[1][-1]

    return Network(
        init=init,
        apply=apply,
        apply_many=jax.vmap(apply, (None, 0)),
        tangent=tangent,
        example=jax.ShapeDtypeStruct((dim,), "float32"),
        check=check_vector(dim),
        first=FirstLayer(prepare, finish, backward, last) if front is None else None,
        last_layer=lambda params, context: last(params[ahead:], params[ahead] @ prepare(see(params, context))),
    )
