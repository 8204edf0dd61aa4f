"""Neural-σ²-LinUCB: Neural-LinUCB that weighs a reward by how much it can vary (Bui, Mallada & Liu 2025)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    ALPHA,
    GAUSSIAN_NETWORK,
    PRECISION,
    RIDGE,
    TRAINING,
    check_last_layer,
    in_units,
    last_layer_for,
    training_for,
)
from neuralucb.confidence import constant
from neuralucb.estimators.last_layer import last_layer_regression
from neuralucb.estimators.variance_ridge import variance_ridge
from neuralucb.policy import Policy, combine
from neuralucb.rules import ucb
from neuralucb.settings import number

__all__ = ["NEURAL_VARIANCE_LIN_UCB"]

DEPARTS = (
    "the bounds of rewards, the extremes observed so far, which the text knows; one ϑ for all rounds while w is "
    "trained; and the pull to w_0"
)


def neural_variance_lin_ucb(task: Task, settings: Mapping[str, Any]) -> Policy:
    """Neural-σ²-LinUCB, practical version: Neural-LinUCB with A = λI + Σ φφᵀ/σ_t² (Bui et al. 2025).

        σ_t² = (R_max - ϑᵀφ)(ϑᵀφ - R_min), a bound on the variance of the reward of round t

    so that rewards near a bound, which can vary little, count more. A round costs as Neural-LinUCB's.
    Departs from the paper in: the bounds of rewards, the extremes observed so far, which the text knows; one ϑ for all
    rounds while w is trained; and the pull to w_0.
    """

    def make(task: Task) -> Policy:
        network, features, design = last_layer_for(task, settings)
        estimator = last_layer_regression(
            network,
            features,
            variance_ridge(features, design, least_variance=settings["least_variance"]),
            training_for(task, settings),
            start=settings["start"],
            shallow=True,
            recomputes=False,
        )
        return combine(estimator, ucb(constant(settings["exploration"])))

    return in_units(task, settings, make)


NEURAL_VARIANCE_LIN_UCB = Algorithm(
    "neural-variance-lin-ucb",
    "Neural-LinUCB in which rewards that can vary little count more",
    "Bui, Mallada & Liu 2025",
    DEPARTS,
    (
        ALPHA,
        RIDGE._replace(meaning="ridge in A_0 and pull to w_0"),
        number(
            "least_variance",
            "σ²",
            0.02,
            "least σ_t², over the squared range of rewards",
            above=0,
            most=0.25,
            grid=(0.005, 0.02, 0.1),
        ),
        *TRAINING,
        *GAUSSIAN_NETWORK,
        PRECISION,
    ),
    neural_variance_lin_ucb,
    check_last_layer,
    title="Neural-σ²-LinUCB",
    family="later",
)
