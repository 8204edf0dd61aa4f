"""Neural ε-greedy: NeuralUCB's network and training, ε-greedy choice (Zhou, Li & Gu 2020, Section 7)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    DEPARTS,
    EPSILON,
    NETWORK,
    PULL,
    TRAINING,
    check_training,
    in_units,
    network_for,
    training_for,
)
from neuralucb.designs import none
from neuralucb.estimators.neural import neural
from neuralucb.policy import Policy, combine
from neuralucb.rules import epsilon_greedy

__all__ = ["NEURAL_EPSILON_GREEDY"]


def neural_epsilon_greedy(task: Task, settings: Mapping[str, Any]) -> Policy:
    """Neural ε-greedy: NeuralUCB's network and training, ε-greedy choice (Zhou et al. 2020, Section 7).

    A round costs K network evaluations; a training costs what NeuralUCB's costs.
    Departs from the paper in: `gaussian` θ_0 by default, where the text has two halves; `paper` on request.
    """

    def make(task: Task) -> Policy:
        estimator = neural(network_for(task, settings), none(), training_for(task, settings), start=settings["start"])
        return combine(estimator, epsilon_greedy(settings["epsilon"]))

    return in_units(task, settings, make)


NEURAL_EPSILON_GREEDY = Algorithm(
    "neural-epsilon-greedy",
    "the same network and training, ε-greedy choice",
    "Zhou, Li & Gu 2020, Section 7",
    DEPARTS,
    (EPSILON, PULL, *TRAINING, *NETWORK),
    neural_epsilon_greedy,
    check_training,
    title="Neural ε-greedy",
    family="paper",
)
