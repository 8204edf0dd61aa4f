"""Algorithm 1 of Zhang, Zhou, Li & Gu 2021, line by line, with U as an explicit matrix."""

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from tests.reference.neural_ucb import flat, gradient, network, train_nn


class NeuralTS:
    """`m` the width, `lam` and `nu` the text's λ and ν; a sample for each arm, from draws of N(0, 1) that are given."""

    def __init__(self, initial, *, m, lam, nu):
        self.initial = [np.asarray(matrix, np.float64) for matrix in initial]
        self.weights = [matrix.copy() for matrix in self.initial]
        self.m, self.lam, self.nu = m, lam, nu
        self.U = lam * np.eye(flat(self.initial).size)
        self.contexts, self.rewards = [], []

    def means(self, contexts):
        return np.array([network(self.weights, x, np.sqrt(self.m)) for x in contexts])

    def deviations(self, contexts):
        """νσ_{t,k}, with σ² = λ gᵀU⁻¹g/m."""
        slopes = [flat(gradient(self.weights, x, np.sqrt(self.m))) for x in contexts]
        return self.nu * np.sqrt([self.lam * g @ np.linalg.solve(self.U, g) / self.m for g in slopes])

    def samples(self, contexts, draws):
        return self.means(contexts) + self.deviations(contexts) * draws

    def chances(self, contexts):
        """How likely each arm's sample is the highest: its density times the others' distributions, integrated."""
        f, s = self.means(contexts), self.deviations(contexts)

        def highest(value, arm):
            others = [norm.cdf((value - f[b]) / s[b]) for b in range(len(f)) if b != arm]
            return norm.pdf((value - f[arm]) / s[arm]) / s[arm] * np.prod(others)

        return np.array(
            [quad(highest, f[a] - 9 * s[a], f[a] + 9 * s[a], args=(a,), limit=200)[0] for a in range(len(f))]
        )

    def observe(self, x, reward):
        g = flat(gradient(self.weights, x, np.sqrt(self.m)))
        self.U = self.U + np.outer(g, g) / self.m
        self.contexts.append(x)
        self.rewards.append(reward)

    def learn(self, *, step_size, steps):
        """Its (2.3): the loss with mλ‖θ - θ_0‖²/2, from θ_0."""
        self.weights = train_nn(
            self.initial, self.initial, self.contexts, self.rewards,
            factor=np.sqrt(self.m), pull=self.m * self.lam, step_size=step_size, steps=steps,
        )  # fmt: skip
