"""Networks beyond the paper's, forwards only, in float64, with loops. W_L is a vector, the factor √m is left out."""

import numpy as np


def relu(x):
    return np.maximum(x, 0.0)


def residual(weights, x):
    h = relu(weights[0] @ x)
    for matrix in weights[1:-1]:
        h = h + relu(matrix @ h)
    return weights[-1] @ h


def layer_norm(weights, x):
    h = x
    for matrix in weights[:-1]:
        z = matrix @ h
        h = relu((z - z.mean()) / np.sqrt(z.var() + 1e-5))
    return weights[-1] @ h


def dense(weights, x):
    for matrix in weights[:-1]:
        x = relu(matrix @ x)
    return weights[-1] @ x


def embedding(tables, weights, x, columns):
    """Other columns first, then the vector of each category; 0 for a code that is none."""
    vectors = []
    for table, column in zip(tables, columns, strict=True):
        code = round(x[column])
        vectors.append(table[code] if 0 <= code < len(table) else np.zeros(table.shape[1]))
    others = [value for column, value in enumerate(x) if column not in columns]
    return dense(weights, np.concatenate([others, *vectors]))


def convolve(maps, kernel):
    """3 × 3, every other pixel, 0 around the image; the kernel's last column is the bias."""
    height, width, channels = maps.shape
    padded = np.zeros((height + 2, width + 2, channels))
    padded[1:-1, 1:-1] = maps
    found = [
        [relu(kernel[:, :-1] @ padded[r : r + 3, c : c + 3].ravel() + kernel[:, -1]) for c in range(0, width, 2)]
        for r in range(0, height, 2)
    ]
    return np.asarray(found)


def cnn(kernels, weights, image):
    maps = image
    for kernel in kernels:
        maps = convolve(maps, kernel)
    return dense(weights, np.append(maps.ravel(), 1.0))
