"""NeuralBandit: a committee of networks, ε-greedy (Allesiardo, Féraud & Bouneffouf 2014)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    EPSILON,
    GAUSSIAN_NETWORK,
    PULL,
    TRAINING,
    check_training,
    in_units,
    network_for,
    training_for,
)
from neuralucb.estimators.committee import committee
from neuralucb.policy import Policy
from neuralucb.runtime.precision import Number
from neuralucb.settings import integer, number
from neuralucb.training import Train

__all__ = ["NEURAL_BANDIT"]

APART = 3.0
"""The factor between the steps of two members."""

DEPARTS = (
    "exponential weights of squared errors, which every member makes in every round, where the text plays EXP3 over "
    "members; one network for all arms, or one trunk with a head per arm; and members that differ by steps alone"
)


def neural_bandit(task: Task, settings: Mapping[str, Any]) -> Policy:
    """NeuralBandit: of several networks one, by its errors so far, chooses ε-greedily (Allesiardo et al. 2014).

        member j with probability ∝ exp(-η Σ (f_j(x) - r)²), over the predictions that it made before it saw r

    A round costs K evaluations of every network; a training trains all networks side by side.
    Departs from the paper in: exponential weights of squared errors, which every member makes in every round, where the
    text plays EXP3 over members; one network for all arms, or one trunk with a head per arm, where the text has one
    network per arm; and members that differ by steps alone.
    """

    def make(task: Task) -> Policy:
        def train_at(step_size: Number) -> Train:
            return training_for(task, {**settings, "step_size": step_size})

        middle = (settings["networks"] - 1) / 2
        sizes = [settings["step_size"] * APART ** (place - middle) for place in range(settings["networks"])]
        shape = {name: settings[name] for name in ("epsilon", "learning_rate", "start")}
        return committee(network_for(task, settings), train_at, sizes, **shape)

    return in_units(task, settings, make)


NEURAL_BANDIT = Algorithm(
    "neural-bandit",
    "a committee of networks, weighted by their errors, ε-greedy choice",
    "Allesiardo, Féraud & Bouneffouf 2014",
    DEPARTS,
    (
        EPSILON,
        integer("networks", "M", 3, "members of the committee"),
        number("learning_rate", "η", 0.1, "how much a member's errors weigh", least=0, grid=(0.01, 0.1, 1)),
        PULL,
        *TRAINING,
        *GAUSSIAN_NETWORK,
    ),
    neural_bandit,
    check_training,
    title="NeuralBandit",
    family="discussed",
)
