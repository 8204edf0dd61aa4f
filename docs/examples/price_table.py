"""A table of rewards: what each of four prices would have earned from each customer, in euros."""

import numpy as np

from neuralucb.problems import register_problem
from neuralucb.problems.rewards import rewards
from neuralucb.settings import integer, number

PRICES = np.array([5.0, 10.0, 20.0, 40.0])


@register_problem(
    "prices",
    settings=(
        integer("customers", "n", 2000, "rows of the table"),
        number("noise", "ξ", 2.0, "standard deviation of a sale, in euros", least=0),
    ),
)
def prices(customers, noise):
    """Four prices, customers with a budget that depends on three features, revenue in euros."""
    X = np.random.default_rng(0).normal(size=(customers, 3))
    budget = 15 * np.exp(0.6 * X[:, 0] - 0.4 * X[:, 1] * X[:, 2])
    bought = 1 / (1 + np.exp((PRICES - budget[:, None]) / 4))  # the probability of a sale
    return rewards(X, PRICES * bought, noise=noise, input_scaling="standard", intercept=True)
