"""Neural ε-greedy_0: NeuralUCB_0's ridge regression, ε-greedy choice (Zhou, Li & Gu 2020, Section 7)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    DESIGN,
    EPSILON,
    NETWORK,
    RIDGE,
    as_in_paper,
    check_network,
    tangent_ridge,
)
from neuralucb.policy import Policy, policy
from neuralucb.rules import epsilon_greedy

__all__ = ["NEURAL_EPSILON_GREEDY0"]


def neural_epsilon_greedy0(task: Task, settings: Mapping[str, Any]) -> Policy:
    """Neural ε-greedy_0: NeuralUCB_0's ridge regression, ε-greedy choice (Zhou et al. 2020, Section 7).

    A round costs what NeuralUCB_0's costs.
    Departs from the paper in nothing.
    """
    return policy(tangent_ridge(task, settings), epsilon_greedy(settings["epsilon"]))


NEURAL_EPSILON_GREEDY0 = Algorithm(
    "neural-epsilon-greedy0",
    "the same ridge regression, ε-greedy choice",
    "Zhou, Li & Gu 2020, Section 7",
    "nothing",
    (EPSILON, RIDGE, *as_in_paper(NETWORK), *as_in_paper(DESIGN)),
    neural_epsilon_greedy0,
    check_network,
    title="Neural ε-greedy₀",
    family="paper",
)
