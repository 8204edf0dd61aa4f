"""The paper's network f(x; θ) = √m W_L σ(W_{L-1} … σ(W_1 x)), its initializations, and its gradient (Section 2)."""

from functools import partial
from typing import Any, NamedTuple, TypeAlias

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
"""`tangent`: √m before the last layer, as in the paper; `standard`: as libraries have it.

Example:
    >>> mlp(dim=2, width=4, depth=2, scaling=SCALINGS[1]).example.shape
    (2,)
"""


INITIALIZATIONS = ("paper", "symmetric", "gaussian", "uniform")
"""How θ_0 is drawn.

Example:
    >>> mlp(dim=2, width=4, depth=2, initialization=INITIALIZATIONS[2]).example.shape
    (2,)
"""


HALVED = ("paper", "symmetric")
"""Initializations that build two halves which cancel."""


Weights: TypeAlias = tuple[jax.Array, ...]
"""W_1 [m, d], …, W_{L-1} [m, m], W_L [m]; with biases each has one more column, or number"""


class _Shape(NamedTuple):
    """The arguments of `mlp`."""

    dim: int
    width: int
    depth: int
    initialization: str
    scaling: str
    duplicate: bool
    biases: bool
    fan_in: int | None
    dtype: Any

    @property
    def inputs(self) -> int:
        """What the first layer sees, without the 1 of its bias."""
        return 2 * self.dim if self.duplicate else self.dim

    @property
    def fan_first(self) -> int:
        """The inputs by which the first layer's weights are sized."""
        return self.inputs if self.fan_in is None else self.fan_in * (2 if self.duplicate else 1)

    @property
    def factor(self) -> jax.Array:
        """What the output is multiplied by: √m, or 1."""
        return jnp.asarray(np.sqrt(self.width) if self.scaling == "tangent" else 1.0, dtype=self.dtype)


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

    Departs from the paper in nothing with `paper`, `tangent` and `duplicate`.

    Args:
        dim: d, the numbers in a context.
        width: m, hidden units per layer.
        depth: L, layers, at least 2.
        initialization: `paper` and `symmetric` start as two halves that cancel, `gaussian` is NeuralUCB_0's, `uniform`
            is that of most libraries: between ±1/√fan-in.
        scaling: `tangent` has the paper's factor √m; `standard` has none, and weights of size 1/√fan-in.
        duplicate: Whether x becomes [x, x]/√2, which makes f(·; θ_0) = 0 for `paper`.
        biases: Whether each layer sees a 1 beside its inputs; for `uniform` and `gaussian`.
        fan_in: Inputs by which the first layer's weights are sized, if not its own: those of (0, …, x, …, 0).
        dtype: Precision of the weights and of all that is computed with them.

    Returns:
        The network, its first layer kept apart so that `disjoint` can split it by arm.

    Raises:
        InputError: For sizes and names that are not allowed or do not go together.

    Example:
        >>> import jax, numpy as np
        >>> network = mlp(4, width=8)
        >>> float(network.apply(network.init(jax.random.key(0)), np.zeros(4, np.float32)))
        0.0
    """
    shape = _Shape(dim, width, depth, initialization, scaling, duplicate, biases, fan_in, dtype)
    _check_shape(shape)
    apply = partial(_apply, shape)
    return Network(
        init=partial(_init, shape),
        apply=apply,
        apply_many=partial(_apply_many, shape),
        tangent=partial(_tangent, shape),
        example=jax.ShapeDtypeStruct((dim,), "float32"),
        check=check_vector(dim),
        first=FirstLayer(
            partial(_prepare, shape), partial(_finish, shape), partial(_backward, shape), partial(_last_hidden, shape)
        ),
        last_layer=lambda weights, context: _last_hidden(shape, weights, weights[0] @ _prepare(shape, context)),
    )


def _init(shape: _Shape, key: jax.Array) -> Weights:
    require(shape.dtype)
    keys = random.split(key, shape.depth)
    drawn = _uniform_layers(shape, keys) if shape.initialization == "uniform" else _normal_layers(shape, keys)
    return tuple(weights.astype(shape.dtype) for weights in drawn)


def _apply(shape: _Shape, weights: Weights, context: jax.Array) -> jax.Array:
    return _finish(shape, weights, weights[0] @ _prepare(shape, context))


def _apply_many(shape: _Shape, weights: Weights, contexts: jax.Array) -> jax.Array:
    """f of each row, with rows as columns: so the products of a small training step copy and transpose nothing."""
    rows = jax.vmap(partial(_prepare, shape))(contexts)
    return _finish(shape, weights, weights[0] @ rows.T)


def _tangent(shape: _Shape, weights: Weights, context: jax.Array) -> tuple[jax.Array, tuple[Any, ...]]:
    x = _prepare(shape, context)
    return _backward(shape, weights, x, weights[0] @ x)


def _prepare(shape: _Shape, context: jax.Array) -> jax.Array:
    """What the first layer sees."""
    x = context.astype(shape.dtype)
    if shape.duplicate:
        x = jnp.concatenate([x, x]) / jnp.sqrt(jnp.asarray(2, dtype=shape.dtype))
    return _with_one(shape, x)


def _finish(shape: _Shape, weights: Weights, first: jax.Array) -> jax.Array:
    """f from W_1 x; of many rows from W_1 Xᵀ, where each is a column."""
    return shape.factor * (weights[-1] @ _activations(shape, weights, first)[-1])


def _backward(shape: _Shape, weights: Weights, x: jax.Array, first: jax.Array) -> tuple[jax.Array, tuple[Any, ...]]:
    """f and g/√m: the gradient of one layer is the outer product of δ, carried down from above, and its inputs."""
    layers = [x, *_activations(shape, weights, first)]
    value = shape.factor * (weights[-1] @ layers[-1])
    parts: list[Any] = [layers[-1]]
    delta = (weights[-1] * (layers[-1] > 0).astype(shape.dtype))[: shape.width]
    for hidden, below in zip(weights[-2:0:-1], layers[-2:0:-1], strict=True):
        parts.append(Outer(delta, below))
        delta = ((delta @ hidden) * (below > 0).astype(shape.dtype))[: shape.width]
    return value, tuple(reversed([*parts, Outer(delta, x)]))


def _last_hidden(shape: _Shape, weights: Weights, first: jax.Array) -> jax.Array:
    """What the output layer sees, from W_1 x."""
    return _activations(shape, weights, first)[-1]


def _activations(shape: _Shape, weights: Weights, first: jax.Array) -> list[jax.Array]:
    """σ(W_1 x), σ(W_2 σ(W_1 x)), …: what the layers above the first see."""
    layers = [_with_one(shape, jax.nn.relu(first))]
    for hidden in weights[1:-1]:
        layers.append(_with_one(shape, jax.nn.relu(hidden @ layers[-1])))
    return layers


def _with_one(shape: _Shape, inputs: jax.Array) -> jax.Array:
    return jnp.concatenate([inputs, jnp.ones((1, *inputs.shape[1:]), dtype=shape.dtype)]) if shape.biases else inputs


def _uniform_layers(shape: _Shape, keys: jax.Array) -> list[jax.Array]:
    """Weights, and with them biases, between ±1/√fan-in."""
    m = shape.width
    sizes = [(m, shape.inputs), *[(m, m)] * (shape.depth - 2), (m,)]
    bounds = [1 / np.sqrt(fan) for fan in (shape.fan_first, *[m] * (shape.depth - 1))]
    return [
        random.uniform(key, (*size[:-1], size[-1] + shape.biases), jnp.float32, -bound, bound)
        for key, size, bound in zip(keys, sizes, bounds, strict=True)
    ]


def _normal_layers(shape: _Shape, keys: jax.Array) -> list[jax.Array]:
    fans = [shape.inputs + shape.biases] + [shape.width + shape.biases] * (shape.depth - 2)
    hidden = [
        _hidden(shape, key, fan, first=layer == 0) for layer, (key, fan) in enumerate(zip(keys[:-1], fans, strict=True))
    ]
    if shape.scaling == "standard":
        hidden[0] = hidden[0] * jnp.sqrt(jnp.float32(shape.inputs / shape.fan_first))
    return [*hidden, _last(shape, keys[-1])]


def _hidden(shape: _Shape, key: jax.Array, fan_in: int, *, first: bool) -> jax.Array:
    """One hidden layer. Variances under `tangent`: 2/m for a layer in one piece, 4/m for one of two diagonal blocks."""
    split = shape.initialization == "paper" or (shape.initialization == "symmetric" and not first)
    rows = shape.width // 2 if shape.initialization in HALVED else shape.width
    columns = fan_in // 2 if split else fan_in
    variance = 1 / columns if shape.scaling == "standard" else (4 if split else 2) / shape.width
    block = jnp.sqrt(jnp.float32(variance)) * random.normal(key, (rows, columns), dtype=jnp.float32)
    if split:
        zero = jnp.zeros_like(block)
        return jnp.block([[block, zero], [zero, block]])
    return jnp.concatenate([block, block]) if shape.initialization == "symmetric" else block


def _last(shape: _Shape, key: jax.Array) -> jax.Array:
    """The output layer: (w, -w) with variance 2/m, or one piece with variance 1/m."""
    size = shape.width + shape.biases
    if shape.initialization == "gaussian":
        return jnp.sqrt(jnp.float32(1 / size)) * random.normal(key, (size,), dtype=jnp.float32)
    variance = (1 if shape.scaling == "standard" else 2) / size
    half = jnp.sqrt(jnp.float32(variance)) * random.normal(key, (size // 2,), dtype=jnp.float32)
    return jnp.concatenate([half, -half])


def _check_shape(shape: _Shape) -> None:
    for name, value, least in (("dim", shape.dim, 1), ("width", shape.width, 1), ("depth", shape.depth, 2)):
        if value < least:
            raise InputError(f"{name} must be at least {least}, got {value}.")
    if shape.initialization not in INITIALIZATIONS:
        raise InputError(f"initialization must be one of {', '.join(INITIALIZATIONS)}, got {shape.initialization!r}.")
    if shape.scaling not in SCALINGS:
        raise InputError(f"scaling must be one of {', '.join(SCALINGS)}, got {shape.scaling!r}.")
    if shape.initialization in HALVED and shape.biases:
        raise InputError(f"biases must be false for initialization={shape.initialization!r}, which builds two halves.")
    if shape.initialization in HALVED and shape.width % 2:
        raise InputError(
            f"width must be even for initialization={shape.initialization!r}, which builds two halves, "
            f"got {shape.width}; take {shape.width + 1}, or initialization='gaussian'."
        )
    if shape.initialization == "paper" and not shape.duplicate and shape.dim % 2:
        raise InputError(
            f"dim must be even for initialization='paper', which splits a context into two halves, got {shape.dim}; "
            "take duplicate=True, or initialization='symmetric'."
        )
