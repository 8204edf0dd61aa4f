"""Epoch-Greedy: one uniform choice, then greedy ones, in epochs that grow (Langford & Zhang 2008)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import PRECISION, RIDGE, linear_design, linear_features
from neuralucb.estimators.epochs import epochs
from neuralucb.estimators.ridge import ridge
from neuralucb.policy import Policy, guard
from neuralucb.settings import number

__all__ = ["EPOCH_GREEDY"]


def epoch_greedy(task: Task, settings: Mapping[str, Any]) -> Policy:
    """Epoch-Greedy over ridge regression: in epoch ℓ one uniform choice, then ⌊c√ℓ⌋ greedy ones.

    It learns from the uniform choices alone (Langford & Zhang 2008, Algorithm 1). A round costs O(K d²). Its
    propensities are exact.
    Departs from the paper in: the policies it learns, the greedy ones of a ridge regression, where the text minimizes
    the importance-weighted error over any class; c√ℓ, with c in place of the text's constants; and epochs that are
    counted in rewards.
    """
    features = linear_features(task)
    estimator = ridge(features, linear_design(task, settings))
    return guard(epochs(estimator, exploitation=settings["exploitation"]), features.check)


EPOCH_GREEDY = Algorithm(
    "epoch-greedy",
    "one uniform choice to learn from, then greedy ones, in epochs that grow",
    "Langford & Zhang 2008, Algorithm 1",
    "ridge regression for the class of policies, and c√ℓ greedy rounds, with c in place of the text's constants; "
    "epochs are counted in rewards",
    (
        number("exploitation", "c", 1.0, "greedy rounds in epoch ℓ, over √ℓ", above=0, grid=(0.3, 1, 3, 10)),
        RIDGE,
        PRECISION,
    ),
    epoch_greedy,
    title="Epoch-Greedy",
    family="related",
)
