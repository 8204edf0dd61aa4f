"""NeuralUCB: optimism over the gradients of a trained network (Zhou, Li & Gu 2020, Algorithm 1)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    CONSTANTS,
    DEPARTS,
    DESIGN,
    EXPLORATION,
    NETWORK,
    RADIUS,
    REGULARIZATION,
    TRAINING,
    assumptions,
    check_training,
    design_for,
    in_units,
    network_for,
    training_for,
)
from neuralucb.confidence import Confidence, constant, theoretical
from neuralucb.estimators.neural import neural
from neuralucb.policy import Policy, combine
from neuralucb.rules import ucb
from neuralucb.runtime.errors import InputError
from neuralucb.settings import choice

__all__ = ["NEURAL_UCB"]


def neural_ucb(task: Task, settings: Mapping[str, Any]) -> Policy:
    """NeuralUCB: optimism over the gradients of a trained network (Zhou et al. 2020, Algorithm 1).

    A round costs O(Kp²) with full Z and O(Kp) with diagonal Z; a training costs J·B network evaluations.
    Departs from the paper in: `gaussian` θ_0 by default, where the text has two halves; `paper` on request.
    """

    # T, λ, ν, δ, S, η, J, m and L of Algorithm 1, line 1 are the task and the settings
    def make(task: Task) -> Policy:
        network = network_for(task, settings)
        train = training_for(task, settings)
        estimator = neural(network, design_for(network, settings), train, start=settings["start"])
        return combine(estimator, ucb(_confidence(settings)))

    return in_units(task, settings, make)


def _confidence(settings: Mapping[str, Any]) -> Confidence:
    if settings["confidence"] == "constant":
        return constant(settings["exploration"])
    shape = {name: settings[name] for name in ("width", "depth", "step_size", "steps")}
    return theoretical(assumptions(settings), ridge=settings["regularization"], **shape)


def _check(task: Task, settings: Mapping[str, Any]) -> None:
    check_training(task, settings)
    product = settings["step_size"] * settings["width"] * settings["regularization"]
    if settings["confidence"] == "theoretical" and product >= 1:
        raise InputError(
            "step_size · width · regularization (ηmλ) must be below 1 with confidence=theoretical, whose γ_t has "
            f"the factor (1 - ηmλ)^(J/2), got {product:g}; take a smaller step_size."
        )


NEURAL_UCB = Algorithm(
    "neural-ucb",
    "optimism over the gradients of a trained network",
    "Zhou, Li & Gu 2020, Algorithm 1",
    DEPARTS,
    (
        EXPLORATION,
        REGULARIZATION,
        *TRAINING,
        *NETWORK,
        *DESIGN,
        choice("confidence", "γ_t", "constant", "γ, or Algorithm 1's γ_t", options=("constant", "theoretical")),
        *(setting._replace(meaning=f"{setting.meaning}; for theoretical γ_t", grid=()) for setting in RADIUS),
        *CONSTANTS,
    ),
    neural_ucb,
    _check,
    title="NeuralUCB",
    family="paper",
)
