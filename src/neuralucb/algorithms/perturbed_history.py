"""Perturbed history on a generalised linear model: noise on past rewards explores (Kveton et al. 2020)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task, context_check
from neuralucb.algorithms.shared_settings import RIDGE
from neuralucb.estimators.likelihood import LINKS
from neuralucb.estimators.perturbed import perturbed
from neuralucb.policy import Policy, guard
from neuralucb.settings import choice, integer, number

__all__ = ["PERTURBED_HISTORY"]


def perturbed_history(task: Task, settings: Mapping[str, Any]) -> Policy:
    """GLM-FPL: follow the leader on rewards to which Gaussian noise was added (Kveton et al. 2020).

    A round costs O(M d²) and a choice O(M K d), a lesson O(M iterations t d²), times K where arms share a context. Its
    propensities are exact.
    Departs from the paper in: M sets of noise, drawn anew by every lesson, one of which decides, where the text adds
    new noise in every round; and a ridge whose centre is noisy too, in place of first rounds at random.
    """
    made = perturbed(
        LINKS[settings["link"]], models=settings["models"], shape=(task.shared_by or 1, task.dim),
        deviation=settings["perturbation"], ridge=settings["regularization"],
        iterations=1 if settings["link"] == "linear" else settings["iterations"],  # one is exact for the linear link
    )  # fmt: skip
    return guard(made, context_check(task))


PERTURBED_HISTORY = Algorithm(
    "perturbed-history",
    "linear or logistic models of past rewards with noise, one of which decides",
    "Kveton, Zaheer, Szepesvári, Li, Ghavamzadeh & Boutilier 2020, GLM-FPL",
    "M sets of noise, drawn anew by every lesson, one of which decides, where the text draws one in every round; and a "
    "ridge with a noisy centre in place of first rounds at random",
    (
        number("perturbation", "a", 0.3, "deviation of the noise added to rewards", least=0, grid=(0.1, 0.3, 1)),
        RIDGE._replace(meaning="ridge in the likelihood"),
        choice("link", "μ", "linear", "from a linear predictor to the reward", options=tuple(LINKS)),
        integer("models", "M", 10, "models fitted side by side"),
        integer("iterations", "", 10, "Newton iterations per lesson"),
    ),
    perturbed_history,
    title="GLM-FPL",
    family="discussed",
)
