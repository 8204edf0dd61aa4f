"""Banditron: a perceptron for classes of which only the one chosen is told right or wrong (Kakade et al. 2008)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task, context_check
from neuralucb.algorithms.shared_settings import EPSILON
from neuralucb.estimators.perceptron import perceptron
from neuralucb.policy import Policy, guard

__all__ = ["BANDITRON"]


def banditron(task: Task, settings: Mapping[str, Any]) -> Policy:
    """Banditron: a perceptron's scores, ε-greedy, and its step in expectation (Kakade et al. 2008, Algorithm 1).

    A round costs O(K d). Its propensities are exact, and none is 0 while ε is above 0. Its means are a perceptron's
    scores, no expected rewards.
    Departs from the paper in: rewards from 0 to 1, where the text has right and wrong; and, for arms with contexts of
    their own, one vector for all arms, whose step has the same expectation but needs the context played alone.
    """
    shape = (task.shared_by or 1, task.dim)
    made = perceptron(shape=shape, shared=task.shared_by is not None, epsilon=settings["epsilon"])
    return guard(made, context_check(task))


BANDITRON = Algorithm(
    "banditron",
    "a perceptron that hears of the arm it chose alone",
    "Kakade, Shalev-Shwartz & Tewari 2008, Algorithm 1",
    "rewards from 0 to 1 in place of right and wrong; for arms with contexts of their own one vector for all, with "
    "an importance-weighted step",
    (EPSILON._replace(symbol="γ", default=0.1, grid=(0.01, 0.03, 0.1, 0.3)),),
    banditron,
    title="Banditron",
    family="related",
)
