"""GP-UCB (Srinivas et al. 2010) with an RBF kernel: the posterior computed anew every round.

A context is a pair of x and an arm; contexts of different arms are independent (Krause & Ong 2011)."""

import numpy as np


class GpUCB:
    def __init__(self, *, bandwidth, variance, failure):
        self.bandwidth, self.variance, self.failure = bandwidth, variance, failure
        self.points, self.rewards = [], []

    def kernel(self, a, b):
        (x, arm), (y, other) = a, b
        return (arm == other) * np.exp(-np.sum((x - y) ** 2) / (2 * self.bandwidth**2))

    def upper(self, pairs, scale):
        t = len(self.points) + 1
        beta = 2 * np.log(len(pairs) * t**2 * np.pi**2 / (6 * self.failure))
        if not self.points:
            return np.full(len(pairs), scale * np.sqrt(beta))
        K = np.array([[self.kernel(a, b) for b in self.points] for a in self.points])
        inverse = np.linalg.inv(K + self.variance * np.eye(len(K)))
        scores = []
        for pair in pairs:
            k = np.array([self.kernel(pair, b) for b in self.points])
            deviation = np.sqrt(self.kernel(pair, pair) - k @ inverse @ k)
            scores.append(k @ inverse @ np.array(self.rewards) + scale * np.sqrt(beta) * deviation)
        return np.array(scores)

    def observe(self, pair, reward):
        self.points.append(pair)
        self.rewards.append(reward)
