"""NeuralLinear: Bayesian regression on a network's last hidden layer, Thompson sampling (Riquelme et al. 2018)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    EXPLORATION,
    NETWORK,
    PRECISION,
    RIDGE,
    TRAINING,
    check_last_layer,
    in_units,
    last_layer_for,
    training_for,
)
from neuralucb.confidence import constant
from neuralucb.estimators.bayesian_ridge import bayesian_ridge
from neuralucb.estimators.last_layer import last_layer_regression
from neuralucb.policy import Policy, combine
from neuralucb.rules import thompson

__all__ = ["NEURAL_LINEAR"]

DEPARTS = (
    "the noise's variance at its posterior mean, where the text draws it; one sample per arm, also where arms share "
    "a regression; and features of at most 4096 rows after a training"
)


def neural_linear(task: Task, settings: Mapping[str, Any]) -> Policy:
    """NeuralLinear: a network learns features, a Bayesian regression on them samples (Riquelme et al. 2018).

        r̃_a ~ N(μᵀφ(x_a), ν² E[σ²] φᵀZ⁻¹φ),   φ the last hidden layer, one μ, Z and σ per arm where arms have heads

    After each training the regression is computed anew on the new features. A round costs K evaluations of the
    network and O(K m²), a training one of the network and O(t m²).
    Departs from the paper in: the noise's variance at its posterior mean, where the text draws it; one sample per arm,
    also where arms share a regression; and features of at most 4096 rows, evenly spread, after a training.
    """

    def make(task: Task) -> Policy:
        network, features, design = last_layer_for(task, settings)
        linear = bayesian_ridge(features, design)
        train = training_for(task, settings)
        estimator = last_layer_regression(network, features, linear, train, start=settings["start"])
        return combine(estimator, thompson(constant(settings["exploration"])))

    return in_units(task, settings, make)


NEURAL_LINEAR = Algorithm(
    "neural-linear",
    "Bayesian regression on the last layer of a network, a sample for each arm",
    "Riquelme, Tucker & Snoek 2018",
    DEPARTS,
    (
        EXPLORATION._replace(symbol="ν", default=0.3, meaning="scale of the posterior's deviation; 1 in the paper"),
        RIDGE._replace(meaning="ridge of the regression, and pull to θ_0"),
        *TRAINING,
        *NETWORK,
        PRECISION,
    ),
    neural_linear,
    check_last_layer,
    title="NeuralLinear",
    family="discussed",
)
