"""KernelUCB: kernel ridge regression and optimism (Valko et al. 2013)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import ALPHA, PRECISION, RIDGE, linear_features, precision_of
from neuralucb.confidence import constant
from neuralucb.estimators.kernel import kernel, rbf
from neuralucb.gradients import inner
from neuralucb.policy import Policy, policy
from neuralucb.rules import ucb
from neuralucb.settings import choice, integer, number

__all__ = ["KERNEL_UCB"]


def kernel_ucb(task: Task, settings: Mapping[str, Any]) -> Policy:
    """KernelUCB: kernel ridge regression and optimism, over the first `budget` contexts (Valko et al. 2013).

    A round costs O(K budget²), from the first.
    Departs from the paper in nothing.
    """
    similarity = rbf(settings["bandwidth"]) if settings["kernel"] == "rbf" else inner
    budget = settings["budget"] if task.rounds is None else min(settings["budget"], task.rounds)
    common = {"ridge": settings["regularization"], "dtype": precision_of(settings)}
    estimator = kernel(linear_features(task), similarity, capacity=budget, stops=True, **common)
    return policy(estimator, ucb(constant(settings["exploration"])))


KERNEL_UCB = Algorithm(
    "kernel-ucb",
    "kernel ridge regression and optimism",
    "Valko, Korda, Munos, Flaounas & Cristianini 2013",
    "nothing",
    (
        ALPHA,
        number("bandwidth", "σ", 1.0, "of the RBF kernel", above=0, grid=(0.1, 1, 10)),
        RIDGE._replace(meaning="ridge in K + λI", grid=()),
        integer("budget", "", 1000, "contexts after which none is added"),
        choice("kernel", "k", "rbf", "the kernel", options=("rbf", "linear")),
        PRECISION,
    ),
    kernel_ucb,
    title="KernelUCB",
    family="paper",
)
