"""A small convolutional network for images (LeCun et al. 1998): two convolutions, then dense layers."""

from math import isqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.networks.network import Network
from neuralucb.networks.stack import Front, stack
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import require

__all__ = ["cnn"]

CHANNELS = (8, 16)
"""Of the convolutions: 3 × 3, every other pixel, ReLU."""


def cnn(dim: int, *, image: tuple[int, ...] | None = None, **shape: Any) -> Network:
    """A network for images: two convolutions 3 × 3 of stride 2 with 8 and 16 channels, then dense layers with ReLU.

    For 28 × 28 pixels the dense layers see 7 · 7 · 16 + 1 numbers, the 1 for a bias. Of the convolutions gradients are
    arrays, of the dense layers outer products.

    Args:
        dim: d, the numbers in a context: an image, row by row, the channels of a pixel beside each other.
        image: (height, width) or (height, width, channels); if not set, a square of one channel.
        shape: The other arguments of `mlp`, for the dense layers.

    Returns:
        The network; its parameters are the two kernels [channels, 9 · channels below + 1], then the dense layers'.

    Raises:
        InputError: If an image of that shape has not `dim` numbers, or `dim` is no square.

    Example:
        >>> import jax
        >>> [leaf.shape for leaf in cnn(64, width=32).init(jax.random.key(0))]
        [(8, 10), (16, 73), (32, 65), (32,)]
    """
    height, width, channels = _shape_of(dim, image)
    dtype = shape.get("dtype", "float32")
    below = (channels, *CHANNELS[:-1])
    places = [_patches(_half(height, times), _half(width, times)) for times in range(len(CHANNELS))]
    size = _half(height, len(CHANNELS)) * _half(width, len(CHANNELS)) * CHANNELS[-1] + 1

    def init(key: jax.Array) -> tuple[jax.Array, ...]:
        require(dtype)
        kernels = []
        for each, of, to in zip(jax.random.split(key, len(CHANNELS)), below, CHANNELS, strict=True):
            scale = jnp.asarray(np.sqrt(2 / (9 * of)), "float32")  # He et al. 2015: variances stay through ReLU
            drawn = scale * jax.random.normal(each, (to, 9 * of), "float32")
            kernels.append(jnp.concatenate([drawn, jnp.zeros((to, 1), "float32")], axis=1).astype(dtype))
        return tuple(kernels)

    def apply(kernels: tuple[jax.Array, ...], context: jax.Array) -> jax.Array:
        maps = context.astype(dtype).reshape(height * width, channels)
        for kernel, place in zip(kernels, places, strict=True):
            outside = jnp.zeros((1, maps.shape[1]), dtype)
            patches = jnp.concatenate([maps, outside])[place].reshape(len(place), -1)
            ones = jnp.ones((len(place), 1), dtype)
            maps = jax.nn.relu(jnp.concatenate([patches, ones], axis=1) @ kernel.T)
        return jnp.concatenate([maps.ravel(), jnp.ones(1, dtype)])

    def backward(kernels: tuple[jax.Array, ...], context: jax.Array, slope: jax.Array) -> tuple[Any, ...]:
        return tuple(jax.vjp(lambda now: apply(now, context), kernels)[1](slope)[0])

    front = Front(init, apply, backward, size, len(CHANNELS))
    return stack(dim, lambda computed, _: jax.nn.relu(computed), front=front, **shape)


def _half(length: int, times: int) -> int:
    for _ in range(times):
        length = (length + 1) // 2
    return length


def _patches(height: int, width: int) -> np.ndarray:
    """[pixels kept, 9] which pixels every other one sees around it; height · width for those outside."""
    rows, columns = np.meshgrid(np.arange(0, height, 2), np.arange(0, width, 2), indexing="ij")
    steps = np.array([(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1)])
    r, c = (middle.reshape(-1, 1) + step for middle, step in ((rows, steps[:, 0]), (columns, steps[:, 1])))
    inside = (r >= 0) & (r < height) & (c >= 0) & (c < width)
    return np.where(inside, r * width + c, height * width)


def _shape_of(dim: int, image: tuple[int, ...] | None) -> tuple[int, int, int]:
    if image is None:
        side = isqrt(dim)
        if side**2 != dim:
            raise InputError(
                f"image must be given for contexts of {dim} numbers, which are no square of one channel; such as 28x28 "
                "or 32x32x3."
            )
        return side, side, 1
    height, width, channels = (*image, 1)[:3]
    if min(height, width, channels) < 1 or height * width * channels != dim:
        raise InputError(
            f"image must have {dim} numbers, as a context has, got {'x'.join(map(str, image))}: "
            f"{height * width * channels}."
        )
    return height, width, channels
