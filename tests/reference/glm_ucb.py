"""GLM-UCB with a sigmoid link and online Newton steps, V inverted anew every round."""

import numpy as np


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


class GlmUCB:
    def __init__(self, dim, *, regularization, step_size):
        self.V = regularization * np.eye(dim)
        self.theta = np.zeros(dim)
        self.step_size = step_size

    def upper(self, contexts, alpha):
        inverse = np.linalg.inv(self.V)
        return np.array([sigmoid(x @ self.theta) + alpha * np.sqrt(x @ inverse @ x) for x in contexts])

    def observe(self, x, reward):
        self.V = self.V + np.outer(x, x)
        self.theta = self.theta - self.step_size * np.linalg.inv(self.V) @ x * (sigmoid(x @ self.theta) - reward)
