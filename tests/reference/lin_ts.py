"""Linear Thompson sampling (Agrawal & Goyal 2013) with a sample for each arm; B inverted anew every round."""

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm


class LinTS:
    def __init__(self, dim, *, regularization, v):
        self.B, self.f, self.v = regularization * np.eye(dim), np.zeros(dim), v

    def means(self, contexts):
        return contexts @ np.linalg.inv(self.B) @ self.f

    def deviations(self, contexts):
        return self.v * np.array([np.sqrt(x @ np.linalg.inv(self.B) @ x) for x in contexts])

    def chances(self, contexts):
        """How likely each arm's sample is the highest: its density times the others' distributions, integrated."""
        m, s = self.means(contexts), self.deviations(contexts)

        def highest(value, arm):
            others = [norm.cdf((value - m[b]) / s[b]) for b in range(len(m)) if b != arm]
            return norm.pdf((value - m[arm]) / s[arm]) / s[arm] * np.prod(others)

        return np.array(
            [quad(highest, m[a] - 9 * s[a], m[a] + 9 * s[a], args=(a,), limit=200)[0] for a in range(len(m))]
        )

    def observe(self, x, reward):
        self.B = self.B + np.outer(x, x)
        self.f = self.f + reward * x
