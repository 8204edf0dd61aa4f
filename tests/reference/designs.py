"""Designs of Z as explicit p × p matrices, one gradient at a time. Layers come as matrices."""

import numpy as np


def flat(layers):
    return np.concatenate([np.ravel(layer) for layer in layers])


class Explicit:
    """Z = λI + what a subclass makes of the gradients so far; widths, determinants and solutions by dense algebra."""

    def __init__(self, size, ridge):
        self.size, self.ridge = size, ridge

    def total(self):
        return self.matrix() + self.ridge * np.eye(self.size)

    def width(self, layers):
        g = flat(layers)
        return np.sqrt(g @ np.linalg.solve(self.total(), g))

    def log_det(self):
        return np.linalg.slogdet(self.total())[1] - self.size * np.log(self.ridge)

    def solve(self, b):
        return np.linalg.solve(self.total(), b)


class Window(Explicit):
    """All gradients; with w, when w are full, the oldest quarter is forgotten before the next comes."""

    def __init__(self, size, ridge, window=None):
        super().__init__(size, ridge)
        self.window, self.kept = window, []

    def add(self, layers):
        if len(self.kept) == self.window:
            self.kept = self.kept[max(1, self.window // 4) :]
        self.kept.append(flat(layers))

    def matrix(self):
        return sum((np.outer(g, g) for g in self.kept), np.zeros((self.size, self.size)))


class BlockDiagonal(Window):
    """The full Z, without products of two layers."""

    def __init__(self, size, ridge, sizes):
        super().__init__(size, ridge)
        self.layer = np.repeat(np.arange(len(sizes)), sizes)

    def matrix(self):
        return super().matrix() * (self.layer[:, None] == self.layer[None])


class LastLayer(Explicit):
    """The full Z of what the output layer sees."""

    def __init__(self, features, ridge):
        super().__init__(features, ridge)
        self.sum = np.zeros((features, features))

    def add(self, features):
        self.sum += np.outer(features, features)

    def matrix(self):
        return self.sum


class Kronecker(Explicit):
    """Σ GGᵀ ⊗ Σ GᵀG/tr by layer, brought up to date when the gradients have grown by a twentieth."""

    def __init__(self, size, ridge):
        super().__init__(size, ridge)
        self.gradients, self.used = [], 0

    def add(self, layers):
        self.gradients.append([np.atleast_2d(layer) for layer in layers])
        if len(self.gradients) > 1.05 * self.used:
            self.used = len(self.gradients)

    def matrix(self):
        found, at = np.zeros((self.size, self.size)), 0
        for layer in zip(*self.gradients[: self.used], strict=True):
            left, right = sum(g @ g.T for g in layer), sum(g.T @ g for g in layer)
            block = np.kron(left, right) / np.trace(right)
            found[at : at + len(block), at : at + len(block)] = block
            at += len(block)
        return found


class FrequentDirections(Explicit):
    """Ghashami et al. 2016 with 2ℓ rows: when they are full, shrink by the (ℓ+1)-th squared singular value."""

    def __init__(self, size, ridge, rank):
        super().__init__(size, ridge)
        self.rank, self.rows, self.lost = rank, np.zeros((0, size)), 0.0

    def add(self, layers):
        self.rows = np.vstack([self.rows, flat(layers)])
        if len(self.rows) == 2 * self.rank:
            _, values, directions = np.linalg.svd(self.rows, full_matrices=False)
            values = np.append(values, np.zeros(2 * self.rank - len(values)))
            shrink = values[self.rank] ** 2
            self.rows = np.sqrt(values[: self.rank] ** 2 - shrink)[:, None] * directions[: self.rank]
            self.lost += shrink

    def matrix(self):
        return self.rows.T @ self.rows


class Projected(Explicit):
    """The full Z of Rg."""

    def __init__(self, matrix, ridge):
        super().__init__(len(matrix), ridge)
        self.projection, self.sum = matrix, np.zeros((len(matrix), len(matrix)))

    def add(self, layers):
        g = self.projection @ flat(layers)
        self.sum += np.outer(g, g)

    def width(self, layers):
        return super().width([self.projection @ flat(layers)])

    def solve(self, b):
        return self.projection.T @ super().solve(self.projection @ b)

    def matrix(self):
        return self.sum
