"""Exp4 of Auer, Cesa-Bianchi, Freund & Schapire 2002: weights over experts whose advice is given."""

import numpy as np


class Exp4:
    def __init__(self, experts, *, gamma):
        self.w, self.gamma = np.ones(experts), gamma

    def chances(self, advice):
        return (1 - self.gamma) * self.w @ advice / self.w.sum() + self.gamma / advice.shape[1]

    def observe(self, advice, arm, reward):
        estimate = advice[:, arm] * reward / self.chances(advice)[arm]
        self.w = self.w * np.exp(self.gamma * estimate / advice.shape[1])
