"""UCB-GLM: a generalised linear model by maximum likelihood, and optimism (Li, Lu & Zhou 2017)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import ALPHA, PRECISION, RIDGE, linear_design, linear_features, precision_of
from neuralucb.confidence import constant
from neuralucb.estimators.glm_mle import glm_mle
from neuralucb.estimators.likelihood import LINKS
from neuralucb.policy import Policy, combine, guard
from neuralucb.rules import linked, ucb
from neuralucb.settings import integer

__all__ = ["UCB_GLM"]


def ucb_glm(task: Task, settings: Mapping[str, Any]) -> Policy:
    """UCB-GLM: a = argmax x_aᵀθ̂ + α sqrt(x_aᵀV⁻¹x_a), θ̂ of maximum likelihood (Li, Lu & Zhou 2017, Algorithm 1).

    θ̂ is found by Newton's method over the history at every lesson; in between each observation moves it by one Newton
    step. With a lesson after every round it is the text's.
    A round costs O(K d²), a lesson O(iterations t d²), times K where arms share a context.
    Departs from the paper in: a ridge λ, in place of its first τ rounds at random, which make V invertible and θ̂
    finite; and Newton steps between lessons.
    """
    features, design = linear_features(task), linear_design(task, settings)
    shape = (task.shared_by or 1, task.dim)
    estimator = glm_mle(
        features, design, LINKS["logistic"], shape=shape, ridge=settings["regularization"],
        iterations=settings["iterations"], dtype=precision_of(settings),
    )  # fmt: skip
    rule = linked(ucb(constant(settings["exploration"])), LINKS["logistic"].mean)
    return guard(combine(estimator, rule), features.check)


UCB_GLM = Algorithm(
    "ucb-glm",
    "a sigmoid of a linear model, by maximum likelihood, and optimism",
    "Li, Lu & Zhou 2017, Algorithm 1",
    "a ridge λ in place of the first τ rounds at random, and Newton steps between lessons, which find θ̂ anew",
    (
        ALPHA,
        RIDGE._replace(meaning="ridge in V_0 and in the likelihood"),
        integer("iterations", "", 10, "Newton iterations per lesson"),
        PRECISION,
    ),
    ucb_glm,
    title="UCB-GLM",
    family="related",
)
