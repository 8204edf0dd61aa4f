"""GLOC: a generalised linear model, with confidence sets from an online learner (Jun et al. 2017)."""

from collections.abc import Mapping
from typing import Any

import jax

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import ALPHA, PRECISION, RIDGE, linear_design, linear_features
from neuralucb.confidence import constant
from neuralucb.estimators.gloc import gloc as estimate
from neuralucb.policy import Policy, policy
from neuralucb.rules import linked, ucb
from neuralucb.settings import number

__all__ = ["GLOC"]


def gloc(task: Task, settings: Mapping[str, Any]) -> Policy:
    """GLOC: a = argmax x_aᵀθ̂ + α sqrt(x_aᵀV⁻¹x_a), θ̂ a regression on an online learner's own predictions.

    What was observed is never read again: a round costs O(K d²), however long the history (Jun et al. 2017,
    Algorithm 1 with the online Newton step, Algorithm 2).
    Departs from the paper in: a constant α for √β_t; the step without its projection onto a ball; one ridge λ for the
    learner and the confidence set.
    """
    estimator = estimate(linear_features(task), linear_design(task, settings), step_size=settings["step_size"])
    return policy(estimator, linked(ucb(constant(settings["exploration"])), jax.nn.sigmoid))


GLOC = Algorithm(
    "gloc",
    "a sigmoid of a linear model, by online-to-confidence-set conversion, and optimism",
    "Jun, Bhargava, Nowak & Willett 2017, Algorithms 1 and 2",
    "a constant α for √β_t, the Newton step without its projection onto a ball, one ridge for learner and set",
    (
        ALPHA,
        RIDGE,
        number("step_size", "η", 1.0, "size of a Newton step, 1/κ", above=0, grid=(1, 10, 100)),
        PRECISION,
    ),
    gloc,
    title="GLOC",
    family="related",
)
