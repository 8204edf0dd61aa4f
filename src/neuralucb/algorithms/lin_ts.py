"""Linear Thompson sampling: ridge regression, and one sample per arm (Agrawal & Goyal 2013)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import ALPHA, PRECISION, RIDGE, linear_design, linear_features
from neuralucb.confidence import constant
from neuralucb.estimators.ridge import ridge
from neuralucb.policy import Policy, policy
from neuralucb.rules import thompson

__all__ = ["LIN_TS"]


def lin_ts(task: Task, settings: Mapping[str, Any]) -> Policy:
    """Linear Thompson sampling: r̃_a ~ N(x_aᵀB⁻¹b, v² x_aᵀB⁻¹x_a), and the best of them (Agrawal & Goyal 2013).

    A round costs O(K d²), and O(K²) for the propensities, whose error is that of `thompson`.
    Departs from the paper in: a sample for each arm, where the text draws one parameter for all of them. For arms that
    share a context the two are the same, since each arm has a parameter to itself. And in a constant v.
    """
    estimator = ridge(linear_features(task), linear_design(task, settings))
    return policy(estimator, thompson(constant(settings["exploration"])))


LIN_TS = Algorithm(
    "lin-ts",
    "ridge regression, and a sample for each arm as wide as its interval",
    "Agrawal & Goyal 2013, Algorithm 1",
    "a sample for each arm, where the text draws one parameter for all arms (the same where arms share a context), "
    "and a constant v",
    (ALPHA._replace(symbol="v", meaning="scale of the samples' deviation"), RIDGE._replace(grid=()), PRECISION),
    lin_ts,
    title="LinTS",
    family="related",
)
