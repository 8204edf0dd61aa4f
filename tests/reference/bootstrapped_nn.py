"""BootstrappedNN: several networks, each with its own share of the data and its own training."""

import numpy as np

from tests.reference.neural_ucb import network, train_nn


class BootstrappedNN:
    def __init__(self, initials, *, factor):
        self.initials = [[np.asarray(matrix, np.float64) for matrix in initial] for initial in initials]
        self.weights = [[matrix.copy() for matrix in initial] for initial in self.initials]
        self.factor = factor
        self.contexts = [[] for _ in initials]
        self.rewards = [[] for _ in initials]

    def means(self, which, contexts):
        return np.array([network(self.weights[which], x, self.factor) for x in contexts])

    def observe(self, x, reward, mine):
        """`mine` says for each network whether the observation enters its data."""
        for contexts, rewards, enters in zip(self.contexts, self.rewards, mine, strict=True):
            if enters:
                contexts.append(x)
                rewards.append(reward)

    def learn(self, *, pull, step_size, steps):
        self.weights = [
            train_nn(initial, initial, xs, rs, factor=self.factor, pull=pull, step_size=step_size, steps=steps)
            for initial, xs, rs in zip(self.initials, self.contexts, self.rewards, strict=True)
        ]
