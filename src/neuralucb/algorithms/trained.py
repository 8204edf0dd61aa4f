"""Algorithms that train a network: NeuralUCB, Neural ε-greedy, BootstrappedNN."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    CONSTANTS,
    DESIGN,
    EPSILON,
    EXPLORATION,
    NETWORK,
    RADIUS,
    REGULARIZATION,
    TRAINING,
    assumptions,
    check_training,
    design_for,
    network_for,
    training_for,
)
from neuralucb.confidence import Confidence, constant, theoretical
from neuralucb.designs import none
from neuralucb.estimators.bootstrap import bootstrap
from neuralucb.estimators.neural import neural
from neuralucb.policy import Policy, policy
from neuralucb.rules import epsilon_greedy, ucb
from neuralucb.runtime.errors import InputError
from neuralucb.settings import choice, integer, number

__all__ = ["BOOTSTRAPPED_NN", "NEURAL_EPSILON_GREEDY", "NEURAL_UCB"]

DEPARTS = "a gaussian θ_0 by default, where the text has two halves (initialization=paper)"
PULL = REGULARIZATION._replace(meaning="pull to θ_0")


def neural_ucb(task: Task, settings: Mapping[str, Any]) -> Policy:
    """NeuralUCB: optimism over the gradients of a trained network (Zhou et al. 2020, Algorithm 1).

    A round costs O(Kp²) with full Z and O(Kp) with diagonal Z; a training J·B network evaluations.
    Departs from the paper in: `gaussian` θ_0 by default, where the text has two halves; `paper` on request.
    """
    network = network_for(task, settings)
    estimator = neural(network, design_for(network, settings), training_for(settings), start=settings["start"])
    return policy(estimator, ucb(_confidence(settings)))


def neural_epsilon_greedy(task: Task, settings: Mapping[str, Any]) -> Policy:
    """Neural ε-greedy: NeuralUCB's network and training, ε-greedy choice (Zhou et al. 2020, Section 7).

    A round costs K network evaluations; a training as NeuralUCB's.
    Departs from the paper in: `gaussian` θ_0 by default, where the text has two halves; `paper` on request.
    """
    estimator = neural(network_for(task, settings), none(), training_for(settings), start=settings["start"])
    return policy(estimator, epsilon_greedy(settings["epsilon"]))


def bootstrapped_nn(task: Task, settings: Mapping[str, Any]) -> Policy:
    """BootstrappedNN: networks on samples of the data, one of which decides greedily (Riquelme et al. 2018).

    A round costs K evaluations of one network; a training those of all networks, side by side.
    Departs from the paper in: `gaussian` θ_0 by default; `paper` on request.
    """
    return bootstrap(
        network_for(task, settings),
        training_for(settings),
        networks=settings["networks"],
        inclusion=settings["inclusion"],
        start=settings["start"],
    )


def _confidence(settings: Mapping[str, Any]) -> Confidence:
    if settings["confidence"] == "constant":
        return constant(settings["exploration"])
    shape = {name: settings[name] for name in ("width", "depth", "step_size", "steps")}
    return theoretical(assumptions(settings), ridge=settings["regularization"], **shape)


def _check(task: Task, settings: Mapping[str, Any]) -> None:
    network_for(task, settings)
    check_training(settings)


def _check_neural_ucb(task: Task, settings: Mapping[str, Any]) -> None:
    _check(task, settings)
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
    _check_neural_ucb,
)

NEURAL_EPSILON_GREEDY = Algorithm(
    "neural-epsilon-greedy",
    "the same network and training, ε-greedy choice",
    "Zhou, Li & Gu 2020, Section 7",
    DEPARTS,
    (EPSILON, PULL, *TRAINING, *NETWORK),
    neural_epsilon_greedy,
    _check,
)

BOOTSTRAPPED_NN = Algorithm(
    "bootstrapped-nn",
    "ten networks on samples of the data, one of which decides",
    "Efron 1982; Riquelme, Tucker & Snoek 2018",
    DEPARTS,
    (
        integer("networks", "q", 10, "networks trained side by side"),
        number("inclusion", "p", 0.8, "probability that an observation is a network's", above=0, most=1),
        PULL,
        *TRAINING,
        *NETWORK,
    ),
    bootstrapped_nn,
    _check,
)
