"""A convolutional network in plain JAX for square images such as mnist's: one output per class."""

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.algorithms import register_network

CHANNELS, HIDDEN, SIZE = (8, 16), 128, 5


def windows(side):
    """[positions, SIZE²] which pixels of an image each position of a convolution sees."""
    starts, offsets = np.arange(side - SIZE + 1), np.arange(SIZE)
    rows = starts[:, None, None, None] + offsets[:, None]
    return (rows * side + starts[:, None, None] + offsets).reshape(len(starts) ** 2, SIZE**2)


def halve(image, side):
    """The largest of every 2 × 2 pixels; image [side², channels]."""
    return image.reshape(side // 2, 2, side // 2, 2, -1).max((1, 3)).reshape((side // 2) ** 2, -1)


@register_network("mnist-cnn")
def mnist_cnn(task, settings):
    """Two convolutions of 5 × 5, each halved, and a hidden layer of 128; one output per arm."""
    sides = [round(task.dim**0.5)]
    for _ in CHANNELS:
        sides.append((sides[-1] - SIZE + 1) // 2)
    inputs = SIZE**2, SIZE**2 * CHANNELS[0], sides[-1] ** 2 * CHANNELS[1], HIDDEN
    outputs = *CHANNELS, HIDDEN, task.shared_by

    def init(key):
        keys = jax.random.split(key, 4)
        sizes = (2, 2, 2, 1e-4)  # the last layer starts near 0: no arm is preferred
        draws = zip(keys, inputs, outputs, sizes, strict=True)
        return [
            (jax.random.normal(k, (i, o), "float32") * (s / i) ** 0.5, jnp.zeros(o, "float32")) for k, i, o, s in draws
        ]

    def apply(params, x):
        x = x[:, None]
        for side, (kernel, bias) in zip(sides, params[:2], strict=False):
            seen = x[windows(side)].reshape((side - SIZE + 1) ** 2, -1)
            x = halve(jax.nn.relu(seen @ kernel + bias[None]), side - SIZE + 1)
        hidden = jax.nn.relu(x.ravel() @ params[2][0] + params[2][1])
        return hidden @ params[3][0] + params[3][1]

    return init, apply
