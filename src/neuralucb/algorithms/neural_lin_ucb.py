"""Neural-LinUCB: deep representation, shallow exploration: LinUCB on a network's last layer (Xu et al. 2022)."""

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
from neuralucb.estimators.ridge import ridge
from neuralucb.policy import Policy, combine
from neuralucb.rules import ucb

__all__ = ["NEURAL_LIN_UCB"]


def neural_lin_ucb(task: Task, settings: Mapping[str, Any]) -> Policy:
    """Neural-LinUCB: U_a = ϑᵀφ(x_a; w) + α ‖φ(x_a; w)‖_{A⁻¹}, φ the last hidden layer (Xu et al. 2022, Algorithm 1).

        A = λI + Σ φ_iφ_iᵀ,   ϑ = A⁻¹Σ r_iφ_i,   φ_i as it was in round i;   w minimises Σ (ϑᵀφ(x_i; w) - r_i)²/2

    A round costs K evaluations of the network and O(K m²).
    Departs from the paper in: one ϑ for all rounds while w is trained, the regression's on the features of the last w,
    where the text keeps that of each round; and the pull to w_0.
    """

    def make(task: Task) -> Policy:
        network, features, design = last_layer_for(task, settings)
        estimator = last_layer_regression(
            network,
            features,
            ridge(features, design),
            training_for(task, settings),
            start=settings["start"],
            shallow=True,
            recomputes=False,
        )
        return combine(estimator, ucb(constant(settings["exploration"])))

    return in_units(task, settings, make)


NEURAL_LIN_UCB = Algorithm(
    "neural-lin-ucb",
    "LinUCB on the last layer of a network, whose lower layers are trained under it",
    "Xu, Wen, Zhao & Gu 2022, Algorithm 1",
    "one ϑ for all rounds while w is trained, where the text keeps that of each round; and the pull to w_0",
    (
        ALPHA,
        RIDGE._replace(meaning="ridge in A_0 and pull to w_0"),
        *TRAINING,
        *GAUSSIAN_NETWORK,
        PRECISION,
    ),
    neural_lin_ucb,
    check_last_layer,
    title="Neural-LinUCB",
    family="later",
)
