"""Online Cover (Agarwal et al. 2014; Bietti et al. 2021) over weighted ridge regressions, solved anew."""

import numpy as np

from tests.reference.banditron import shares


class OnlineCover:
    def __init__(self, dim, *, policies, psi, c, regularization):
        self.n, self.psi, self.c, self.ridge = policies, psi, c, regularization
        self.X, self.weights, self.targets, self.t = np.zeros((0, dim)), [], np.zeros((0, policies)), 1

    def coefficients(self):
        weighted = self.X.T * np.array(self.weights).reshape(-1)
        return np.linalg.solve(weighted @ self.X + self.ridge * np.eye(self.X.shape[1]), weighted @ self.targets)

    def least(self, arms):
        return min(1 / arms, self.c / np.sqrt(arms * self.t))

    def cover(self, contexts):
        """[n, K] which arm each policy chooses."""
        return np.array([shares(contexts @ theta) for theta in self.coefficients().T])

    def chances(self, contexts):
        arms = len(contexts)
        return self.least(arms) + (1 - arms * self.least(arms)) * self.cover(contexts).mean(axis=0)

    def observe(self, contexts, arm, reward):
        arms, e, chosen, p = len(contexts), self.least(len(contexts)), self.cover(contexts), self.chances(contexts)
        targets = [reward]
        for i in range(1, self.n):
            q = chosen[:i].mean(axis=0)
            targets.append(reward + self.psi * e / (e + (1 - arms * e) * q[arm]))
        self.X = np.vstack([self.X, contexts[arm]])
        self.weights, self.targets = [*self.weights, 1 / p[arm]], np.vstack([self.targets, targets])
        self.t += 1
