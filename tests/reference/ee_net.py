"""EE-Net (Ban et al. 2022), linear decision maker: two networks, the second on pooled gradients of the first."""

import numpy as np

from tests.reference.neural_ucb import flat, gradient, network, train_nn


def pool(g, size):
    """Means over stretches of equal length, the last filled up with zeros; of norm 1."""
    length = -(-g.size // size)
    filled = np.concatenate([g, np.zeros(length * size - g.size)])
    means = np.array([filled[place * length : (place + 1) * length].mean() for place in range(size)])
    norm = np.linalg.norm(means)
    return means / norm if norm > 0 else means


class EENet:
    def __init__(self, initial, explorer, *, factor, size, memory):
        self.initial, self.explorer_initial = (
            [np.asarray(matrix, np.float64) for matrix in one] for one in (initial, explorer)
        )
        self.weights, self.explorer = self.initial, self.explorer_initial
        self.factor, self.size, self.memory = factor, size, memory
        self.contexts, self.rewards, self.gradients, self.missed = [], [], [], []

    def pooled(self, x):
        return pool(flat(gradient(self.weights, x, self.factor)) / self.factor, self.size)

    def means(self, contexts):
        return np.array([network(self.weights, x, self.factor) for x in contexts])

    def extras(self, contexts):
        return np.array([network(self.explorer, self.pooled(x), 1.0) for x in contexts])

    def observe(self, x, reward):
        self.gradients.append(self.pooled(x))
        self.missed.append(reward - network(self.weights, x, self.factor))
        self.contexts.append(x)
        self.rewards.append(reward)

    def learn(self, **training):
        last = slice(-self.memory, None)
        self.weights = train_nn(self.initial, self.initial, self.contexts, self.rewards, factor=self.factor, **training)
        self.explorer = train_nn(
            self.explorer_initial,
            self.explorer_initial,
            self.gradients[last],
            self.missed[last],
            factor=1.0,
            **training,
        )
