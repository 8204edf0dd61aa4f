"""A committee of networks (Allesiardo et al. 2014), weighted by the errors of predictions made before the reward."""

import numpy as np

from tests.reference.neural_ucb import network, train_nn


class Committee:
    def __init__(self, initials, *, factor, eta):
        self.initials = [[np.asarray(matrix, np.float64) for matrix in initial] for initial in initials]
        self.weights = self.initials
        self.factor, self.eta = factor, eta
        self.errors = np.zeros(len(initials))
        self.contexts, self.rewards = [], []

    def means(self, contexts):
        return np.array([[network(one, x, self.factor) for x in contexts] for one in self.weights])

    def shares(self):
        weights = np.exp(-self.eta * (self.errors - self.errors.min()))
        return weights / weights.sum()

    def chances(self, contexts, epsilon):
        """Of each arm: a member by its share, then ε-greedy."""
        best = self.means(contexts).argmax(axis=1)
        greedy = np.eye(len(contexts))[best]
        return epsilon / len(contexts) + (1 - epsilon) * self.shares() @ greedy

    def observe(self, x, reward):
        self.errors = self.errors + (self.means([x])[:, 0] - reward) ** 2
        self.contexts.append(x)
        self.rewards.append(reward)

    def learn(self, *, step_sizes, **training):
        self.weights = [
            train_nn(one, one, self.contexts, self.rewards, factor=self.factor, step_size=size, **training)
            for one, size in zip(self.initials, step_sizes, strict=True)
        ]
