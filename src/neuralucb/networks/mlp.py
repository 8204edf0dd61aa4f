"""The paper's network f(x; θ) = √m W_L σ(W_{L-1} … σ(W_1 x)), its initialisations, and its gradient (Section 2)."""

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from neuralucb.gradients import Outer
from neuralucb.networks.network import FirstLayer, Network
from neuralucb.policy import check_vector
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import require

__all__ = ["INITIALIZATIONS", "SCALINGS", "mlp"]

SCALINGS = ("tangent", "standard")


INITIALIZATIONS = ("paper", "symmetric", "gaussian", "uniform")


HALVED = ("paper", "symmetric")


Weights: TypeAlias = tuple[jax.Array, ...]


def mlp(
    dim: int,
    *,
    width: int = 20,
    depth: int = 2,
    initialization: str = "gaussian",
    scaling: str = "tangent",
    duplicate: bool = False,
    biases: bool = False,
    fan_in: int | None = None,
    dtype: Any = "float32",
) -> Network:
    """A ReLU network for contexts of `dim` numbers; without biases p = m·d + m²(L-2) + m parameters.

    scaling        `tangent` has the factor √m of the paper; `standard` has none, and weights of size 1/√fan-in.
    initialization `paper` and `symmetric` start as two halves that cancel, `gaussian` is NeuralUCB_0's, `uniform`
                   is that of most libraries: between ±1/√fan-in.
    duplicate      x becomes [x, x]/√2, which makes f(·; θ_0) = 0 for `paper`.
    biases         each layer sees a 1 beside its inputs; for `uniform` and `gaussian`.
    fan_in         inputs by which the first layer's weights are sized, if not its own: those of (0, …, x, …, 0).

    Departs from the paper in nothing with `paper`, `tangent` and `duplicate`.
    """
    _check_shape(dim, width, depth, initialization, scaling, duplicate, biases)
    inputs = 2 * dim if duplicate else dim
    fan_first = inputs if fan_in is None else fan_in * (2 if duplicate else 1)
    scale = np.sqrt(width) if scaling == "tangent" else 1.0

    def prepare(context: jax.Array) -> jax.Array:
        x = context.astype(dtype)
        return with_one(jnp.concatenate([x, x]) / jnp.sqrt(jnp.asarray(2, dtype=dtype)) if duplicate else x)

    def with_one(inputs: jax.Array) -> jax.Array:
        return jnp.concatenate([inputs, jnp.ones(1, dtype=dtype)]) if biases else inputs

    def init(key: jax.Array) -> Weights:
        require(dtype)
        keys = random.split(key, depth)
        if initialization == "uniform":
            shapes = [(width, inputs), *[(width, width)] * (depth - 2), (width,)]
            fans = [fan_first, *[width] * (depth - 1)]
            drawn = (_uniform(*each, biases) for each in zip(keys, shapes, fans, strict=True))
            return tuple(weights.astype(dtype) for weights in drawn)
        fans = [inputs + biases] + [width + biases] * (depth - 2)
        hidden = [
            _hidden(key_layer, width, fan, first=layer == 0, initialization=initialization, scaling=scaling)
            for layer, (key_layer, fan) in enumerate(zip(keys[:-1], fans, strict=True))
        ]
        if scaling == "standard":
            hidden[0] = hidden[0] * jnp.sqrt(jnp.float32(inputs / fan_first))
        last = _last(keys[-1], width + biases, initialization=initialization, scaling=scaling)
        return tuple(weights.astype(dtype) for weights in (*hidden, last))

    def finish(weights: Weights, first: jax.Array) -> jax.Array:
        h = with_one(jax.nn.relu(first))
        for hidden in weights[1:-1]:
            h = with_one(jax.nn.relu(hidden @ h))
        return jnp.asarray(scale, dtype=dtype) * (weights[-1] @ h)

    def apply(weights: Weights, context: jax.Array) -> jax.Array:
        return finish(weights, weights[0] @ prepare(context))

    def backward(weights: Weights, x: jax.Array, first: jax.Array) -> tuple[jax.Array, tuple[Any, ...]]:
        layers = [x, with_one(jax.nn.relu(first))]
        for hidden in weights[1:-1]:
            layers.append(with_one(jax.nn.relu(hidden @ layers[-1])))
        value = jnp.asarray(scale, dtype=dtype) * (weights[-1] @ layers[-1])
        parts: list[Any] = [layers[-1]]
        delta = (weights[-1] * (layers[-1] > 0).astype(dtype))[:width]
        for hidden, below in zip(weights[-2:0:-1], layers[-2:0:-1], strict=True):
            parts.append(Outer(delta, below))
            delta = ((delta @ hidden) * (below > 0).astype(dtype))[:width]
        return value, tuple(reversed([*parts, Outer(delta, x)]))

    def tangent(weights: Weights, context: jax.Array) -> tuple[jax.Array, tuple[Any, ...]]:
        x = prepare(context)
        return backward(weights, x, weights[0] @ x)

    example, many = jax.ShapeDtypeStruct((dim,), "float32"), jax.vmap(apply, (None, 0))
    return Network(init, apply, many, tangent, example, check_vector(dim), FirstLayer(prepare, finish, backward))


def _uniform(key: jax.Array, shape: tuple[int, ...], fan_in: int, biases: bool) -> jax.Array:
    """Weights, and with them biases, between ±1/√fan-in."""
    bound = 1 / np.sqrt(fan_in)
    return random.uniform(key, (*shape[:-1], shape[-1] + biases), jnp.float32, -bound, bound)


def _hidden(key: jax.Array, width: int, fan_in: int, *, first: bool, initialization: str, scaling: str) -> jax.Array:
    """One hidden layer. Variances under `tangent`: 2/m for a layer in one piece, 4/m for one of two diagonal blocks."""
    split = initialization == "paper" or (initialization == "symmetric" and not first)
    rows = width // 2 if initialization in HALVED else width
    columns = fan_in // 2 if split else fan_in
    variance = 1 / columns if scaling == "standard" else (4 / width if split else 2 / width)
    block = jnp.sqrt(jnp.float32(variance)) * random.normal(key, (rows, columns), dtype=jnp.float32)
    if split:
        zero = jnp.zeros_like(block)
        return jnp.block([[block, zero], [zero, block]])
    return jnp.concatenate([block, block]) if initialization == "symmetric" else block


def _last(key: jax.Array, width: int, *, initialization: str, scaling: str) -> jax.Array:
    """The output layer: (w, -w) with variance 2/m, or one piece with variance 1/m."""
    if initialization == "gaussian":
        return jnp.sqrt(jnp.float32(1 / width)) * random.normal(key, (width,), dtype=jnp.float32)
    variance = 1 / width if scaling == "standard" else 2 / width
    half = jnp.sqrt(jnp.float32(variance)) * random.normal(key, (width // 2,), dtype=jnp.float32)
    return jnp.concatenate([half, -half])


def _check_shape(
    dim: int, width: int, depth: int, initialization: str, scaling: str, duplicate: bool, biases: bool
) -> None:
    for name, value, least in (("dim", dim, 1), ("width", width, 1), ("depth", depth, 2)):
        if value < least:
            raise InputError(f"{name} must be at least {least}, got {value}.")
    if initialization not in INITIALIZATIONS:
        raise InputError(f"initialization must be one of {', '.join(INITIALIZATIONS)}, got {initialization!r}.")
    if scaling not in SCALINGS:
        raise InputError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}.")
    if initialization in HALVED and biases:
        raise InputError(f"biases must be false for initialization={initialization!r}, which builds two halves.")
    if initialization in HALVED and width % 2:
        raise InputError(
            f"width must be even for initialization={initialization!r}, which builds two halves, got {width}; "
            f"take {width + 1}, or initialization='gaussian'."
        )
    if initialization == "paper" and not duplicate and dim % 2:
        raise InputError(
            f"dim must be even for initialization='paper', which splits a context into two halves, got {dim}; "
            "take duplicate=True, or initialization='symmetric'."
        )
