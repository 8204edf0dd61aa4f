"""Algorithms without a network: LinUCB, GLM-UCB, KernelUCB."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import DESIGN, EXPLORATION, REGULARIZATION, precision_of
from neuralucb.confidence import constant
from neuralucb.designs import Design, by_arm, full
from neuralucb.estimators.features import Features, raw, raw_by_arm
from neuralucb.estimators.glm import glm
from neuralucb.estimators.kernel import kernel, rbf
from neuralucb.estimators.ridge import ridge
from neuralucb.gradients import inner
from neuralucb.policy import Policy, policy
from neuralucb.rules import ucb
from neuralucb.settings import choice, integer, number

__all__ = ["GLM_UCB", "KERNEL_UCB", "LIN_UCB"]

ALPHA = EXPLORATION._replace(symbol="α")
RIDGE = REGULARIZATION._replace(meaning="ridge in Z_0", grid=())
PRECISION = DESIGN[1]


def lin_ucb(task: Task, settings: Mapping[str, Any]) -> Policy:
    """LinUCB: ridge regression and optimism (Li et al. 2010; one model for all arms, as Chu et al. 2011).

    A round costs O(K d²). Departs from the paper in nothing.
    """
    features, design = _linear_parts(task, settings)
    return policy(ridge(features, design), ucb(constant(settings["exploration"])))


def glm_ucb(task: Task, settings: Mapping[str, Any]) -> Policy:
    """GLM-UCB: a sigmoid of a linear model, by online Newton steps (Filippi et al. 2010; Jun et al. 2017).

    A round costs O(K d²). Departs from the paper in: the Newton step of Jun et al. without its projection onto a ball.
    """
    features, design = _linear_parts(task, settings)
    estimator = glm(features, design, step_size=settings["step_size"])
    return policy(estimator, ucb(constant(settings["exploration"])))


def kernel_ucb(task: Task, settings: Mapping[str, Any]) -> Policy:
    """KernelUCB: kernel ridge regression and optimism, over the first `budget` contexts (Valko et al. 2013).

    A round costs O(K budget²), from the first. Departs from the paper in nothing.
    """
    similarity = rbf(settings["bandwidth"]) if settings["kernel"] == "rbf" else inner
    budget = settings["budget"] if task.rounds is None else min(settings["budget"], task.rounds)
    common = {"ridge": settings["regularization"], "dtype": precision_of(settings)}
    estimator = kernel(_features(task), similarity, capacity=budget, stops=True, **common)
    return policy(estimator, ucb(constant(settings["exploration"])))


def _features(task: Task) -> Features:
    return raw(task.dim) if task.shared_by is None else raw_by_arm(task.dim, task.shared_by)


def _linear_parts(task: Task, settings: Mapping[str, Any]) -> tuple[Features, Design]:
    """Features and Z; for disjoint contexts Z is block-diagonal, a block for each arm."""
    one = full(task.dim, ridge=settings["regularization"], dtype=precision_of(settings))
    return _features(task), one if task.shared_by is None else by_arm(one, task.shared_by)


LIN_UCB = Algorithm(
    "lin-ucb",
    "ridge regression and optimism",
    "Li, Chu, Langford & Schapire 2010; Chu, Li, Reyzin & Schapire 2011",
    "nothing",
    (ALPHA, RIDGE, PRECISION),
    lin_ucb,
)

GLM_UCB = Algorithm(
    "glm-ucb",
    "a sigmoid of a linear model, and optimism",
    "Filippi, Cappé, Garivier & Szepesvári 2010; Jun, Bhargava, Nowak & Willett 2017",
    "the Newton step of Jun et al. without its projection onto a ball",
    (
        ALPHA._replace(grid=(0.01, 0.1, 1)),
        RIDGE._replace(grid=(0.1, 1, 10)),
        number("step_size", "η", 1.0, "step of a Newton step", above=0, grid=(1, 10, 100)),
        PRECISION,
    ),
    glm_ucb,
)

KERNEL_UCB = Algorithm(
    "kernel-ucb",
    "kernel ridge regression and optimism",
    "Valko, Korda, Munos, Flaounas & Cristianini 2013",
    "nothing",
    (
        ALPHA,
        number("bandwidth", "σ", 1.0, "of the RBF kernel", above=0, grid=(0.1, 1, 10)),
        RIDGE._replace(meaning="ridge in K + λI"),
        integer("budget", "", 1000, "contexts after which none is added"),
        choice("kernel", "k", "rbf", "the kernel", options=("rbf", "linear")),
        PRECISION,
    ),
    kernel_ucb,
)
