"""GLM-UCB: a sigmoid of a linear model, and optimism (Filippi et al. 2010; Jun et al. 2017)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import ALPHA, PRECISION, RIDGE, linear_design, linear_features
from neuralucb.confidence import constant
from neuralucb.estimators.glm import glm
from neuralucb.policy import Policy, policy
from neuralucb.rules import ucb
from neuralucb.settings import number

__all__ = ["GLM_UCB"]


def glm_ucb(task: Task, settings: Mapping[str, Any]) -> Policy:
    """GLM-UCB: a sigmoid of a linear model, by online Newton steps (Filippi et al. 2010; Jun et al. 2017).

    A round costs O(K d²).
    Departs from the paper in: the Newton step of Jun et al. without its projection onto a ball.
    """
    estimator = glm(linear_features(task), linear_design(task, settings), step_size=settings["step_size"])
    return policy(estimator, ucb(constant(settings["exploration"])))


GLM_UCB = Algorithm(
    "glm-ucb",
    "a sigmoid of a linear model, and optimism",
    "Filippi, Cappé, Garivier & Szepesvári 2010; Jun, Bhargava, Nowak & Willett 2017",
    "the Newton step of Jun et al. without its projection onto a ball",
    (
        ALPHA._replace(grid=(0.01, 0.1, 1)),
        RIDGE,
        number("step_size", "η", 1.0, "size of a Newton step", above=0, grid=(1, 10, 100)),
        PRECISION,
    ),
    glm_ucb,
    title="GLM-UCB",
    family="paper",
)
