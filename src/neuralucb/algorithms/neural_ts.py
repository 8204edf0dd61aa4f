"""NeuralTS: Thompson sampling with NeuralUCB's network and design (Zhang et al. 2021)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    DEPARTS,
    DESIGN,
    EXPLORATION,
    NETWORK,
    REGULARIZATION,
    TRAINING,
    check_training,
    design_for,
    in_units,
    network_for,
    training_for,
)
from neuralucb.confidence import constant
from neuralucb.estimators.neural import neural
from neuralucb.policy import Policy, combine
from neuralucb.rules import thompson

__all__ = ["NEURAL_TS"]


def neural_ts(task: Task, settings: Mapping[str, Any]) -> Policy:
    """NeuralTS: NeuralUCB's network and design; one sample per arm decides (Zhang et al. 2021, their Algorithm 1).

        r̃_a ~ N(f(x_a; θ), ν²σ_a²),   σ_a² = λ gᵀU⁻¹g/m: its U is NeuralUCB's Z, so that νσ = ν√λ · width

    Costs as NeuralUCB, and O(K²) for the propensities.
    Departs from the paper in: `gaussian` θ_0 by default, where the text has two halves; `paper` on request.
    """

    def make(task: Task) -> Policy:
        network = network_for(task, settings)
        train = training_for(task, settings)
        estimator = neural(network, design_for(network, settings), train, start=settings["start"])
        return combine(estimator, thompson(constant(settings["exploration"] * settings["regularization"] ** 0.5)))

    return in_units(task, settings, make)


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
    check_training,
    title="NeuralTS",
    family="later",
)
