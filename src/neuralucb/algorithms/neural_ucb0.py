"""NeuralUCB_0: LinUCB on the tangent features of an untrained network (Zhou, Li & Gu 2020, appendix)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    DESIGN,
    NETWORK,
    RADIUS,
    RIDGE,
    as_in_paper,
    assumptions,
    check_network,
    tangent_ridge,
)
from neuralucb.confidence import self_normalised
from neuralucb.policy import Policy, policy
from neuralucb.rules import ucb

__all__ = ["NEURAL_UCB0"]


def neural_ucb0(task: Task, settings: Mapping[str, Any]) -> Policy:
    """NeuralUCB_0: LinUCB on the gradient at θ_0, with its confidence radius (Zhou et al. 2020, Algorithm 3).

    A round costs O(K min(p, T)²) with full Z, O(Kp) with diagonal Z.
    Departs from the paper in nothing.
    """
    # T, λ, ν, δ, S, m and L of Algorithm 3, line 1 are the task and the settings
    radius = self_normalised(assumptions(settings), ridge=settings["regularization"])
    return policy(tangent_ridge(task, settings), ucb(radius))


NEURAL_UCB0 = Algorithm(
    "neural-ucb0",
    "LinUCB on the gradient of an untrained network",
    "Zhou, Li & Gu 2020, appendix (NeuralUCB_0)",
    "nothing",
    (RIDGE, *RADIUS, *as_in_paper(NETWORK), *as_in_paper(DESIGN)),
    neural_ucb0,
    check_network,
    title="NeuralUCB₀",
    family="paper",
)
