"""Inverse gap weighting of Foster & Rakhlin 2020, Algorithm 1, for rewards in place of losses."""

import numpy as np


def probabilities(predicted, learning_rate):
    """p_a = 1/(K + γ(ŷ_b - ŷ_a)) for every arm but the best b, which has the rest."""
    best, chances = int(np.argmax(predicted)), np.zeros(len(predicted))
    for arm, value in enumerate(predicted):
        if arm != best:
            chances[arm] = 1 / (len(predicted) + learning_rate * (predicted[best] - value))
    chances[best] = 1 - sum(chances)
    return chances
