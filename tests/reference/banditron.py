"""Algorithm 1 of Kakade, Shalev-Shwartz & Tewari 2008, line by line, and its linear form for contexts per arm."""

import numpy as np


def shares(scores):
    """1 for the best; equal parts where several tie."""
    best = scores == scores.max()
    return best / best.sum()


class Banditron:
    """Arms share x: a row of W for each."""

    def __init__(self, dim, arms, *, gamma):
        self.W, self.gamma = np.zeros((arms, dim)), gamma

    def chances(self, x):
        return (1 - self.gamma) * shares(self.W @ x) + self.gamma / len(self.W)

    def observe(self, x, arm, reward):
        right = np.zeros(len(self.W))
        right[arm] = reward / self.chances(x)[arm]
        self.W = self.W + np.outer(right - shares(self.W @ x), x)


class LinearBanditron:
    """Each arm has a context of its own: one w."""

    def __init__(self, dim, *, gamma):
        self.w, self.gamma = np.zeros(dim), gamma

    def chances(self, contexts):
        return (1 - self.gamma) * shares(contexts @ self.w) + self.gamma / len(contexts)

    def observe(self, contexts, arm, reward):
        looked_best = shares(contexts @ self.w)[arm]
        self.w = self.w + (reward - looked_best) / self.chances(contexts)[arm] * contexts[arm]
