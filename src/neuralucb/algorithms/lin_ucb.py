"""LinUCB: ridge regression and optimism (Li et al. 2010; one model for all arms, as Chu et al. 2011)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import ALPHA, PRECISION, RIDGE, linear_design, linear_features
from neuralucb.confidence import constant
from neuralucb.estimators.ridge import ridge
from neuralucb.policy import Policy, policy
from neuralucb.rules import ucb

__all__ = ["LIN_UCB"]


def lin_ucb(task: Task, settings: Mapping[str, Any]) -> Policy:
    """LinUCB: ridge regression and optimism (Li et al. 2010; one model for all arms, as Chu et al. 2011).

    A round costs O(K d²).
    Departs from the paper in nothing.
    """
    estimator = ridge(linear_features(task), linear_design(task, settings))
    return policy(estimator, ucb(constant(settings["exploration"])))


LIN_UCB = Algorithm(
    "lin-ucb",
    "ridge regression and optimism",
    "Li, Chu, Langford & Schapire 2010; Chu, Li, Reyzin & Schapire 2011",
    "nothing",
    (ALPHA, RIDGE._replace(grid=()), PRECISION),
    lin_ucb,
    title="LinUCB",
    family="paper",
)
