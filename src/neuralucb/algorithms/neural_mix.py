"""NeuralMix: NeuralUCB at several pulls and LinUCB, mixed by how well each predicts. What `build` makes by default."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    DESIGN,
    EXPLORATION,
    NETWORK,
    REGULARIZATION,
    TRAINING,
    check_training,
    design_for,
    in_units,
    linear_design,
    linear_features,
    network_for,
    training_for,
)
from neuralucb.confidence import constant
from neuralucb.estimators.mixture import mixture
from neuralucb.estimators.neural import neural
from neuralucb.estimators.ridge import ridge
from neuralucb.policy import Estimator, Policy, combine
from neuralucb.rules import ucb
from neuralucb.runtime.precision import Number
from neuralucb.settings import number

__all__ = ["NEURAL_MIX"]

APART = 30.0
"""The factor between the pulls of two networks."""

RIDGE = 1.0
"""λ of the linear model, in learned units."""

MOST_LINEAR = 256
"""Inputs up to which there is a linear model; its Z⁻¹ is exact, and a decision reads all of it."""


def neural_mix(task: Task, settings: Mapping[str, Any]) -> Policy:
    """NeuralMix: optimism over a mixture of NeuralUCB at the pulls λ/30, λ and 30λ, and LinUCB.

        U_a = Σ_j w_j (f_j(x_a) + γ σ' width_j(x_a)),   w_j ∝ exp(-s (E_j - min E) / (2σ²)),   σ² = min E/N

    where σ' is σ, at least 1/2 and at most 1, the deviation of the rewards.
    E_j sums the squared errors of the predictions that member j made before it saw the reward, N the weights of those
    rounds, each ρ times that of the next. Little noisy data want a strong pull or a straight line, much clean data a
    free network: the members that predict best decide. Each term f_j + γ_j width_j is NeuralUCB's index, or LinUCB's,
    so that where all of them bound the expected reward, their mixture does, whatever the weights.

    A round costs what three NeuralUCB and one LinUCB cost, a training what three cost, side by side as lanes.
    Departs from the paper in: the mixture; and γ, which is in units of the noise.
    """

    def make(task: Task) -> Policy:
        network = network_for(task, settings)

        def network_at(pull: Number) -> Estimator:
            own = {**settings, "regularization": pull}
            return neural(network, design_for(network, own), training_for(own), start=settings["start"])

        middle = settings["regularization"]
        pulls = middle / APART, middle, middle * APART
        linear = None
        if task.dim <= MOST_LINEAR:
            exactly = {"regularization": RIDGE, "design_precision": "float64"}
            linear = ridge(linear_features(task), linear_design(task, exactly))
        shape = {name: settings[name] for name in ("discount", "sharpness")}
        return combine(mixture(network_at, pulls, linear, **shape), ucb(constant(settings["exploration"])))

    return in_units(task, settings, make)


NEURAL_MIX = Algorithm(
    "neural-mix",
    "NeuralUCB at several pulls and LinUCB, mixed by how well each predicts",
    "ours; its members are Zhou, Li & Gu 2020, Algorithm 1, and Li, Chu, Langford & Schapire 2010",
    "the mixture of members; and γ, which is in units of the noise",
    (
        EXPLORATION._replace(default=0.15, meaning="scale of the interval, in units of the noise"),
        REGULARIZATION._replace(default=0.3, meaning="pull to θ_0 and ridge in Z_0 of the network in the middle"),
        number("discount", "ρ", 0.998, "weight of a validated round over that of the next", above=0, most=1),
        number("sharpness", "s", 0.1, "how much better predictions weigh", above=0),
        *TRAINING,
        *NETWORK,
        *DESIGN,
    ),
    neural_mix,
    check_training,
    title="NeuralMix",
)
