"""Algorithms that explore by chance over a trained network: NeuralTS, and SquareCB with a network as its oracle."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    DESIGN,
    EXPLORATION,
    NETWORK,
    REGULARIZATION,
    TRAINING,
    design_for,
    network_for,
    training_for,
)
from neuralucb.algorithms.trained import DEPARTS, NEURAL_EPSILON_GREEDY, PULL
from neuralucb.confidence import constant
from neuralucb.designs import none
from neuralucb.estimators.neural import neural
from neuralucb.policy import Policy, policy
from neuralucb.rules import square_cb, thompson
from neuralucb.settings import number

__all__ = ["NEURAL_SQUARE_CB", "NEURAL_TS"]


def neural_ts(task: Task, settings: Mapping[str, Any]) -> Policy:
    """NeuralTS: NeuralUCB's network and design, one sample an arm decides (Zhang et al. 2021, Algorithm 1).

        r̃_a ~ N(f(x_a; θ), ν²σ_a²),   σ_a² = λ gᵀU⁻¹g/m: its U is NeuralUCB's Z, so that νσ = ν√λ · width

    Costs as NeuralUCB, and O(K²) for the propensities.
    Departs from the paper in: `gaussian` θ_0 by default, where the text has two halves; `paper` on request.
    """
    network = network_for(task, settings)
    estimator = neural(network, design_for(network, settings), training_for(settings), start=settings["start"])
    return policy(estimator, thompson(constant(settings["exploration"] * settings["regularization"] ** 0.5)))


def neural_square_cb(task: Task, settings: Mapping[str, Any]) -> Policy:
    """SquareCB, inverse gap weighting, over Neural ε-greedy's network (Foster & Rakhlin 2020, Algorithm 1).

    Costs as Neural ε-greedy. Its propensities are exact, and none is 0 while means are finite.
    Departs from the paper in: the oracle, a network trained anew on all that was seen, where the text has an online
    regression with a bound on its regret.
    """
    estimator = neural(network_for(task, settings), none(), training_for(settings), start=settings["start"])
    return policy(estimator, square_cb(settings["learning_rate"]))


NEURAL_TS = Algorithm(
    "neural-ts",
    "a sample for each arm, as wide as NeuralUCB's interval",
    "Zhang, Zhou, Li & Gu 2021, Algorithm 1",
    DEPARTS,
    (
        EXPLORATION._replace(symbol="ν", meaning="scale of the samples' deviation"),
        REGULARIZATION,
        *TRAINING,
        *NETWORK,
        *DESIGN,
    ),
    neural_ts,
    NEURAL_EPSILON_GREEDY.check,
)

NEURAL_SQUARE_CB = Algorithm(
    "neural-square-cb",
    "the same network and training, the worse an arm looks the rarer",
    "Foster & Rakhlin 2020, Algorithm 1",
    "the oracle, a network trained on all that was seen, where the text has an online regression",
    (
        number("learning_rate", "γ", 100.0, "how greedy; a gap of 1/γ counts as one arm more", least=0),
        PULL,
        *TRAINING,
        *NETWORK,
    ),
    neural_square_cb,
    NEURAL_EPSILON_GREEDY.check,
)
