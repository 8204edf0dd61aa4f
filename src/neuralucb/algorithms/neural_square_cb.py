"""SquareCB with a network as its oracle: inverse gap weighting (Foster & Rakhlin 2020)."""

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
from neuralucb.designs import none
from neuralucb.estimators.neural import neural
from neuralucb.policy import Policy, combine
from neuralucb.rules import square_cb
from neuralucb.settings import number

__all__ = ["NEURAL_SQUARE_CB"]


def neural_square_cb(task: Task, settings: Mapping[str, Any]) -> Policy:
    """SquareCB, inverse gap weighting, over Neural ε-greedy's network (Foster & Rakhlin 2020, their Algorithm 1).

    Costs as Neural ε-greedy. Its propensities are exact, and none is 0 while means are finite.
    Departs from the paper in: the oracle, a network retrained on all observations, where the text has an online
    regression with a bound on its regret.
    """

    def make(task: Task) -> Policy:
        estimator = neural(network_for(task, settings), none(), training_for(task, settings), start=settings["start"])
        return combine(estimator, square_cb(settings["learning_rate"]))

    return in_units(task, settings, make)


NEURAL_SQUARE_CB = Algorithm(
    "neural-square-cb",
    "the same network and training; the worse an arm looks, the rarer it is",
    "Foster & Rakhlin 2020, Algorithm 1",
    "the oracle, a network retrained on all observations, where the text has an online regression",
    (
        number("learning_rate", "γ", 100.0, "how greedy; a gap of 1/γ counts as one more arm", least=0),
        PULL,
        *TRAINING,
        *NETWORK,
    ),
    neural_square_cb,
    check_training,
    title="SquareCB",
    family="later",
)
