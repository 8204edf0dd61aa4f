"""NeuralUCB_0 (Zhou et al. 2020, appendix): ridge regression on the gradient at θ_0, and its confidence radius."""

import numpy as np

from tests.reference.neural_ucb import flat, gradient


class NeuralUCB0:
    def __init__(self, initial, *, width, regularization, nu, delta, S, diagonal=False):
        self.initial = [np.asarray(matrix, np.float64) for matrix in initial]
        self.width, self.lam, self.nu, self.delta, self.S = width, regularization, nu, delta, S
        self.diagonal = diagonal
        p = flat(self.initial).size
        self.Z = regularization * np.eye(p)
        self.b = np.zeros(p)

    def phi(self, x):
        return flat(gradient(self.initial, x, np.sqrt(self.width))) / np.sqrt(self.width)

    def gamma(self):
        log_det = np.linalg.slogdet(self.Z)[1] - len(self.b) * np.log(self.lam)
        return self.nu * np.sqrt(log_det - 2 * np.log(self.delta)) + np.sqrt(self.lam) * self.S

    def means(self, contexts):
        theta = np.linalg.solve(self.Z, self.b)
        return np.array([self.phi(x) @ theta for x in contexts])

    def upper(self, contexts):
        inverse = np.linalg.inv(self.Z)
        widths = [np.sqrt(self.phi(x) @ inverse @ self.phi(x)) for x in contexts]
        return self.means(contexts) + self.gamma() * np.array(widths)

    def observe(self, x, reward):
        phi = self.phi(x)
        self.Z = self.Z + (np.diag(phi * phi) if self.diagonal else np.outer(phi, phi))
        self.b = self.b + reward * phi
