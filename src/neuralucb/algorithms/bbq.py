"""BBQ in its bandit case: Bayes by backprop, Thompson sampling (Lipton et al. 2018; Blundell et al. 2015)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    EXPLORATION,
    NETWORK,
    PULL,
    TRAINING,
    check_network,
    in_units,
    network_for,
)
from neuralucb.estimators.bayes_by_backprop import bayes_by_backprop
from neuralucb.policy import Policy
from neuralucb.settings import integer, number

__all__ = ["BBQ"]

DEPARTS = (
    "one step, so that the target is the reward; a prior around θ_0; and draws that are made after a training and take "
    "turns at random, where the text draws at every decision"
)


def bbq(task: Task, settings: Mapping[str, Any]) -> Policy:
    """BBQ-networks with a horizon of 1: a normal posterior over weights, Thompson sampling (Lipton et al. 2018).

        min over μ, s:  E[Σ (f(x; w) - r)²/(2σ²)] + KL(N(μ, s²) ‖ N(θ_0, σ²/λ)),   w ~ N(μ, s²)

    A round costs K evaluations of every network; a training costs about three of a network's.
    Departs from the paper in: one step, so that the target is the reward; a prior around θ_0; and draws that are made
    after a training and take turns at random, where the text draws at every decision.
    """

    def make(task: Task) -> Policy:
        shape = {name: settings[name] for name in ("networks", "regularization", "step_size", "steps", "batch_size")}
        return bayes_by_backprop(network_for(task, settings), noise=settings["exploration"], **shape)

    return in_units(task, settings, make)


BBQ = Algorithm(
    "bbq",
    "a posterior over the weights by Bayes by backprop, networks drawn from it decide",
    "Lipton, Li, Gao, Li, Ahmed & Deng 2018; Blundell, Cornebise, Kavukcuoglu & Wierstra 2015",
    DEPARTS,
    (
        number(
            "exploration",
            "σ",
            0.1,
            "deviation of the noise, which scales the posterior",
            above=0,
            grid=EXPLORATION.grid,
        ),
        integer("networks", "", 10, "networks drawn from the posterior after a training"),
        PULL._replace(meaning="precision of the prior around θ_0, over that of the noise"),
        *(setting for setting in TRAINING if setting.name in ("step_size", "steps", "batch_size", "units")),
        *NETWORK,
    ),
    bbq,
    check_network,
    title="BBQ",
    family="discussed",
)
