"""GLOC (Jun et al. 2017) with a sigmoid: the online Newton step, and a regression on its own predictions."""

import numpy as np


class Gloc:
    def __init__(self, dim, *, regularization, step_size):
        self.ridge, self.step_size, self.theta = regularization, step_size, np.zeros(dim)
        self.X, self.predictions = np.zeros((0, dim)), []

    def V(self):
        return self.ridge * np.eye(self.X.shape[1]) + self.X.T @ self.X

    def centre(self):
        return np.linalg.solve(self.V(), self.X.T @ np.array(self.predictions).reshape(-1))

    def upper(self, contexts, alpha):
        inverse = np.linalg.inv(self.V())
        return np.array([x @ self.centre() + alpha * np.sqrt(x @ inverse @ x) for x in contexts])

    def observe(self, x, reward):
        z = x @ self.theta
        self.X = np.vstack([self.X, x])
        self.predictions.append(z)
        self.theta = self.theta - self.step_size * np.linalg.solve(self.V(), (1 / (1 + np.exp(-z)) - reward) * x)
