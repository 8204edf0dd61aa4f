"""Features of a context: itself, products of its inputs, a network's gradient at its start, its last hidden layer."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.designs import Design, by_arm, forgetting, full
from neuralucb.gradients import Block, dense
from neuralucb.networks.network import Network
from neuralucb.policy import Context, Slot, check_slot, check_vector, slot_shape
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import Number

__all__ = ["Features", "exact_design", "last_layer", "quadratic", "raw", "raw_by_arm", "require_last_layer", "tangent"]


class Features(NamedTuple):
    """φ(x): a pytree of arrays, `Outer` and `Block`, of `size` numbers in all."""

    init: Callable[[jax.Array], Any]
    """key -> parameters, drawn once"""
    apply: Callable[[Any, Context], Any]
    """parameters, context -> φ(x)"""
    size: int
    example: Any
    """the shape of a context"""
    check: Callable[[Context], None]


def raw(dim: int) -> Features:
    """φ(x) = x."""
    example = jax.ShapeDtypeStruct((dim,), "float32")
    return Features(lambda key: (), lambda params, context: context, dim, example, check_vector(dim))


def raw_by_arm(dim: int, arms: int) -> Features:
    """φ(x, a) = (0, …, x, …, 0) of dim · arms numbers, never built."""

    def apply(params: Any, slot: Slot) -> Block:
        return Block(slot.arm, slot.x, arms)

    return Features(lambda key: (), apply, dim * arms, slot_shape(dim), check_slot(dim, arms))


def quadratic(plain: Features, inputs: int, *, scale: float) -> Features:
    """φ(x) = (x, s x_i x_j for all i ≤ j): what quadratic functions of the first `inputs` numbers are linear in.

    Args:
        plain: `raw`, or `raw_by_arm` where arms share a context.
        inputs: How many numbers are multiplied with each other; those behind them, such as an intercept, are not.
        scale: s, how much products weigh beside the numbers themselves in a ridge regression.
    """

    def extend(x: jax.Array) -> jax.Array:
        rows, columns = np.triu_indices(inputs)  # here: whoever finds that they are too many never makes them
        return jnp.concatenate([x, jnp.asarray(scale, x.dtype) * x[rows] * x[columns]])

    def apply(params: Any, context: Context) -> Any:
        phi = plain.apply(params, context)
        return replace(phi, part=extend(phi.part)) if isinstance(phi, Block) else extend(phi)

    x = plain.example.x if isinstance(plain.example, Slot) else plain.example
    arms = plain.size // x.size
    return plain._replace(apply=apply, size=plain.size + arms * (inputs * (inputs + 1) // 2))


def tangent(network: Network) -> Features:
    """φ(x) = g(x; θ_0)/√m, fixed (Zhou et al. 2020, NeuralUCB_0)."""
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    size = sum(leaf.size for leaf in jax.tree.leaves(shapes))

    def apply(params: Any, context: Context) -> Any:
        return network.tangent(params, context)[1]  # φ of Algorithm 3, line 2; its θ_0 is `init`'s

    return Features(network.init, apply, size, network.example, network.check)


def last_layer(network: Network) -> Features:
    """φ(x) = the last hidden layer (Riquelme et al. 2018, NeuralLinear); its parameters are the network's.

    Where arms share a context and each has its output row, φ is a `Block`, zero but for the arm's.
    """
    apply = require_last_layer(network)
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    made = jax.eval_shape(apply, shapes, network.example)
    size = jax.eval_shape(dense, made).size
    return Features(network.init, apply, size, network.example, network.check)


def require_last_layer(network: Network) -> Callable[[Any, Context], Any]:
    """The network's last hidden layer, as a function of parameters and context; InputError where it tells none."""
    if network.last_layer is None:
        raise InputError(
            "network must tell its last hidden layer (Network.last_layer) for this algorithm, as mlp does; a pair of "
            "functions becomes three, (init, apply, features), or from_functions(…, features=…)."
        )
    return network.last_layer


def exact_design(features: Features, *, ridge: Number, dtype: Any = "float64", memory: int = 0) -> Design:
    """The exact Z over these features; where they are a `Block` it is block-diagonal, and kept as one Z per arm.

    With a memory, each Z forgets all but about so many of its last observations.
    """

    def one(size: int) -> Design:
        if memory:
            return forgetting(size, ridge=ridge, memory=memory, dtype=dtype)
        return full(size, ridge=ridge, dtype=dtype)

    params = jax.eval_shape(features.init, jax.random.key(0))
    made = jax.eval_shape(features.apply, params, features.example)
    if isinstance(made, Block):
        return by_arm(one(features.size // made.arms), made.arms)
    return one(features.size)
