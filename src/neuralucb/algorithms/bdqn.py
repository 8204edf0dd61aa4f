"""BDQN in its bandit case: Bayesian regression per arm on features trained for it (Azizzadenesheli et al. 2018)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    EXPLORATION,
    GAUSSIAN_NETWORK,
    PRECISION,
    RIDGE,
    TRAINING,
    check_last_layer,
    in_units,
    last_layer_for,
    training_for,
)
from neuralucb.confidence import constant
from neuralucb.estimators.last_layer import last_layer_regression
from neuralucb.estimators.ridge import ridge
from neuralucb.policy import Policy, combine
from neuralucb.rules import thompson

__all__ = ["BDQN"]

DEPARTS = (
    "one step, so that the target is the reward; a sample per arm and decision, where the text keeps one for many; "
    "and features trained under the posterior's mean, where the text has that sample"
)


def bdqn(task: Task, settings: Mapping[str, Any]) -> Policy:
    """BDQN with a horizon of 1: Thompson sampling over a network's output layer (Azizzadenesheli et al. 2018).

        r̃_a ~ N(W_aᵀφ(x_a), σ² φᵀZ_a⁻¹φ),   θ ← θ - η ∇_θ (r - W_aᵀφ(x_a; θ))²/2

    It differs from NeuralLinear in three things: the noise σ is given, not learned; the output layer is the
    regression's W alone, under which the features are trained; and the regression is computed from the history when
    the network is trained, and stays so until the next training. Costs as NeuralLinear.
    Departs from the paper in: one step, so that the target is the reward; a sample per arm and decision, where the text
    keeps one for many; and features trained under the posterior's mean, where the text has that sample.
    """

    def make(task: Task) -> Policy:
        network, features, design = last_layer_for(task, settings)
        estimator = last_layer_regression(
            network,
            features,
            ridge(features, design),
            training_for(task, settings),
            start=settings["start"],
            shallow=True,
            waits=True,
        )
        return combine(estimator, thompson(constant(settings["exploration"])))

    return in_units(task, settings, make)


BDQN = Algorithm(
    "bdqn",
    "Bayesian regression on features that are trained under its mean, a sample for each arm",
    "Azizzadenesheli, Brunskill & Anandkumar 2018",
    DEPARTS,
    (
        EXPLORATION._replace(symbol="σ", default=0.3, meaning="deviation of the noise, which scales the samples"),
        RIDGE._replace(meaning="ridge of the regression, and pull to θ_0"),
        *TRAINING,
        *GAUSSIAN_NETWORK,
        PRECISION,
    ),
    bdqn,
    check_last_layer,
    title="BDQN",
    family="discussed",
)
