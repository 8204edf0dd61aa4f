"""LinUCB (Li et al. 2010), one model for all arms, with A inverted anew every round."""

import numpy as np


class LinUCB:
    def __init__(self, dim, *, regularization):
        self.A = regularization * np.eye(dim)
        self.b = np.zeros(dim)

    def upper(self, contexts, alpha):
        inverse = np.linalg.inv(self.A)
        theta = inverse @ self.b
        return np.array([x @ theta + alpha * np.sqrt(x @ inverse @ x) for x in contexts])

    def observe(self, x, reward):
        self.A = self.A + np.outer(x, x)
        self.b = self.b + reward * x
