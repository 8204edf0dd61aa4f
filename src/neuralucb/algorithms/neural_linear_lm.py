"""NeuralLinear with limited memory and likelihood matching (Zahavy & Mannor 2019)."""

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
from neuralucb.estimators.likelihood_matching import likelihood_matching
from neuralucb.policy import Policy, combine
from neuralucb.rules import thompson
from neuralucb.settings import integer

__all__ = ["NEURAL_LINEAR_LM"]

DEPARTS = (
    "the precision, a weighted sum over stored contexts found by fixed-point steps, where the text solves a "
    "semidefinite program; stored rewards, which are not added to the matched prior again; and a known noise"
)


def neural_linear_lm(task: Task, settings: Mapping[str, Any]) -> Policy:
    """NeuralLinear-LM: NeuralLinear that remembers few rows and keeps their variances (Zahavy & Mannor 2019).

        r̃_a ~ N(f(x_a; θ) + δᵀφ(x_a), ν² φᵀZ⁻¹φ),   Z = λI + Σ w_j φ_jφ_jᵀ after a training, over the memory

    with w for which the stored contexts have the variances they had before. A round costs K evaluations of the network
    and O(K m²), a training one of the network and O(10 memory · m²), however many rounds were played.
    Departs from the paper in: the precision, a weighted sum over stored contexts found by fixed-point steps, where the
    text solves a semidefinite program; stored rewards, which are not added to the matched prior again; and a known
    noise.
    """

    def make(task: Task) -> Policy:
        network, features, design = last_layer_for(task, settings)
        shape = {name: settings[name] for name in ("memory", "start")}
        estimator = likelihood_matching(network, features, design, training_for(task, settings), **shape)
        return combine(estimator, thompson(constant(settings["exploration"])))

    return in_units(task, settings, make)


NEURAL_LINEAR_LM = Algorithm(
    "neural-linear-lm",
    "NeuralLinear that remembers few rows and keeps the variances of those",
    "Zahavy & Mannor 2019",
    DEPARTS,
    (
        EXPLORATION._replace(symbol="ν", default=0.3, meaning="deviation of the noise, which scales the samples"),
        RIDGE._replace(meaning="ridge of the regression, and pull to θ_0"),
        integer("memory", "", 256, "rows remembered"),
        *TRAINING,
        *NETWORK,
        PRECISION,
    ),
    neural_linear_lm,
    check_last_layer,
    title="NeuralLinear-LM",
    family="discussed",
)
