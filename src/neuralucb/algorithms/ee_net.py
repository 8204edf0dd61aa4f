"""EE-Net: one network for the reward, another for what the first misses (Ban, Yan, Banerjee & He 2022)."""

from collections.abc import Mapping
from typing import Any

import jax

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    EXPLORATION,
    NETWORK,
    PULL,
    TRAINING,
    check_training,
    in_units,
    network_for,
    training_for,
)
from neuralucb.confidence import constant
from neuralucb.estimators.ee_net import ee_net as exploitation_exploration
from neuralucb.networks.mlp import mlp
from neuralucb.policy import Policy, combine
from neuralucb.rules import ucb
from neuralucb.settings import integer

__all__ = ["EE_NET"]

POOLED = 128
"""Numbers to which a gradient is pooled, if it has more."""

DEPARTS = (
    "the linear decision maker f_1 + f_2, one of the text's, without its third network; gradients pooled to at most "
    "128 numbers, of norm 1; and an exploration network that remembers the last rounds only"
)


def ee_net(task: Task, settings: Mapping[str, Any]) -> Policy:
    """EE-Net: argmax f_1(x_a) + f_2(∇f_1(x_a)), f_2 trained on what f_1 missed (Ban et al. 2022, Algorithm 1).

    A round costs K gradients and K evaluations of the second network, a training two networks.
    Departs from the paper in: the linear decision maker f_1 + f_2, one of the text's, without its third network;
    gradients pooled to at most 128 numbers, of norm 1; and an exploration network that remembers the last `memory`
    rounds only.
    """

    def make(task: Task) -> Policy:
        network = network_for(task, settings)
        shapes = jax.eval_shape(network.init, jax.random.key(0))
        size = min(POOLED, sum(leaf.size for leaf in jax.tree.leaves(shapes)))
        width = 2 * ((settings["width"] + 1) // 2)  # two halves, so that it starts at 0
        explorer = mlp(
            size, width=width, depth=2, initialization="symmetric", scaling="standard",
            dtype=settings["network_precision"],
        )  # fmt: skip
        shape = {name: settings[name] for name in ("memory", "start")}
        train = training_for(task, settings)
        estimator = exploitation_exploration(network, explorer, train, size=size, **shape)
        return combine(estimator, ucb(constant(settings["exploration"])))

    return in_units(task, settings, make)


EE_NET = Algorithm(
    "ee-net",
    "a network for the reward and one, on its gradient, for what it misses; the best sum",
    "Ban, Yan, Banerjee & He 2022, Algorithm 1",
    DEPARTS,
    (
        EXPLORATION._replace(symbol="", default=1.0, meaning="weight of the exploration network; 1 in the paper"),
        integer("memory", "", 2048, "rounds that the exploration network learns from"),
        PULL,
        *TRAINING,
        *NETWORK,
    ),
    ee_net,
    check_training,
    title="EE-Net",
    family="later",
)
