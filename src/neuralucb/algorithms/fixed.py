"""Algorithms on the tangent features of an untrained network: NeuralUCB_0 and Neural ε-greedy_0."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    DESIGN,
    EPSILON,
    NETWORK,
    RADIUS,
    REGULARIZATION,
    assumptions,
    design_for,
    network_for,
    precision_of,
)
from neuralucb.confidence import self_normalised
from neuralucb.estimators.features import tangent
from neuralucb.estimators.kernel import kernel
from neuralucb.estimators.ridge import ridge
from neuralucb.gradients import inner
from neuralucb.policy import Estimator, Policy, policy
from neuralucb.rules import epsilon_greedy, ucb

__all__ = ["NEURAL_EPSILON_GREEDY0", "NEURAL_UCB0"]

RIDGE = REGULARIZATION._replace(meaning="ridge in Z_0")


def neural_ucb0(task: Task, settings: Mapping[str, Any]) -> Policy:
    """NeuralUCB_0: LinUCB on the gradient at θ_0, with its confidence radius (Zhou et al. 2020, appendix).

    A round costs O(K min(p, T)²) with full Z, O(Kp) with diagonal Z. Departs from the paper in nothing.
    """
    radius = self_normalised(assumptions(settings), ridge=settings["regularization"])
    return policy(_tangent_ridge(task, settings), ucb(radius))


def neural_epsilon_greedy0(task: Task, settings: Mapping[str, Any]) -> Policy:
    """Neural ε-greedy_0: NeuralUCB_0's ridge regression, ε-greedy choice (Zhou et al. 2020, Section 7).

    A round costs what NeuralUCB_0's costs. Departs from the paper in nothing.
    """
    return policy(_tangent_ridge(task, settings), epsilon_greedy(settings["epsilon"]))


def _tangent_ridge(task: Task, settings: Mapping[str, Any]) -> Estimator:
    """Ridge on tangent features: p × p, or the same numbers from T × T where rounds are fewer than parameters."""
    network = network_for(task, settings)
    features = tangent(network)
    if settings["design"] == "full" and task.rounds is not None and task.rounds < features.size:
        common = {"ridge": settings["regularization"], "dtype": precision_of(settings)}
        return kernel(features, inner, capacity=task.rounds, **common)
    return ridge(features, design_for(network, settings))


def _check(task: Task, settings: Mapping[str, Any]) -> None:
    network_for(task, settings)


NEURAL_UCB0 = Algorithm(
    "neural-ucb0",
    "LinUCB on the gradient of an untrained network",
    "Zhou, Li & Gu 2020, appendix (NeuralUCB_0)",
    "nothing",
    (RIDGE, *RADIUS, *NETWORK, *DESIGN),
    neural_ucb0,
    _check,
)

NEURAL_EPSILON_GREEDY0 = Algorithm(
    "neural-epsilon-greedy0",
    "the same ridge regression, ε-greedy choice",
    "Zhou, Li & Gu 2020, Section 7",
    "nothing",
    (EPSILON, RIDGE, *NETWORK, *DESIGN),
    neural_epsilon_greedy0,
    _check,
)
