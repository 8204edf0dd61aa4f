"""NPR: a network trained on perturbed rewards, greedy (Jia et al. 2022)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    NETWORK,
    PULL,
    TRAINING,
    check_training,
    in_units,
    network_for,
    training_for,
)
from neuralucb.estimators.ensemble import ensemble, gaussian_rewards
from neuralucb.policy import Policy
from neuralucb.settings import integer, number

__all__ = ["NEURAL_PERTURBED"]

DEPARTS = (
    "several networks side by side, each with its own noise, that take turns at random between trainings, where the "
    "text trains one anew in every round"
)


def neural_perturbed(task: Task, settings: Mapping[str, Any]) -> Policy:
    """NPR: at every training all rewards get noise N(0, ν²) anew; the choice is greedy (Jia et al. 2022, Algorithm 1).

    A round costs K evaluations of every network; a training trains all networks side by side.
    Departs from the paper in: several networks side by side, each with its own noise, that take turns at random between
    trainings, where the text trains one anew in every round.
    """

    def make(task: Task) -> Policy:
        shape = {name: settings[name] for name in ("networks", "start")}
        view = gaussian_rewards(settings["exploration"])
        return ensemble(network_for(task, settings), training_for(task, settings), view=view, **shape)

    return in_units(task, settings, make)


NEURAL_PERTURBED = Algorithm(
    "neural-perturbed",
    "networks trained on rewards with noise, greedy choice",
    "Jia, Zhang, Zhou, Gu & Wang 2022, Algorithm 1",
    DEPARTS,
    (
        number("exploration", "ν", 0.5, "deviation of the noise added to rewards", least=0, grid=(0.1, 0.3, 1)),
        integer("networks", "", 5, "networks trained side by side"),
        PULL,
        *TRAINING,
        *NETWORK,
    ),
    neural_perturbed,
    check_training,
    title="NPR",
    family="later",
)
