"""KernelUCB (Valko et al. 2013) with an RBF kernel: the whole system solved anew every round."""

import numpy as np


class KernelUCB:
    def __init__(self, *, bandwidth, regularization, budget):
        self.bandwidth, self.regularization, self.budget = bandwidth, regularization, budget
        self.points, self.rewards = [], []

    def kernel(self, x, y):
        return np.exp(-np.sum((x - y) ** 2) / (2 * self.bandwidth**2))

    def upper(self, contexts, alpha):
        if not self.points:
            return np.array([alpha * np.sqrt(self.kernel(x, x) / self.regularization) for x in contexts])
        K = np.array([[self.kernel(x, y) for y in self.points] for x in self.points])
        inverse = np.linalg.inv(K + self.regularization * np.eye(len(K)))
        scores = []
        for x in contexts:
            k = np.array([self.kernel(x, y) for y in self.points])
            variance = (self.kernel(x, x) - k @ inverse @ k) / self.regularization
            scores.append(k @ inverse @ np.array(self.rewards) + alpha * np.sqrt(variance))
        return np.array(scores)

    def observe(self, x, reward):
        if len(self.points) < self.budget:
            self.points.append(x)
            self.rewards.append(reward)
