"""Epoch-Greedy (Langford & Zhang 2008) over ridge regression, with the data of explorations in a list."""

import math

import numpy as np


class EpochGreedy:
    def __init__(self, dim, *, regularization, c):
        self.ridge, self.c, self.X, self.r = regularization, c, np.zeros((0, dim)), []
        self.plan = self.epochs()
        self.explores = next(self.plan)

    def epochs(self):
        """Whether to explore, round by round: once, then ⌊c√ℓ⌋ times not."""
        epoch = 0
        while True:
            epoch += 1
            yield True
            for _ in range(math.floor(self.c * math.sqrt(epoch))):
                yield False

    def means(self, contexts):
        Z = self.ridge * np.eye(self.X.shape[1]) + self.X.T @ self.X
        return contexts @ np.linalg.solve(Z, self.X.T @ np.array(self.r).reshape(-1))

    def chances(self, contexts):
        if self.explores:
            return np.full(len(contexts), 1 / len(contexts))
        means = self.means(contexts)
        best = means == means.max()
        return best / best.sum()

    def observe(self, x, reward):
        if self.explores:
            self.X, self.r = np.vstack([self.X, x]), [*self.r, reward]
        self.explores = next(self.plan)
