"""Online Cover: a few policies that together play what each would miss (Agarwal et al. 2014)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import PRECISION, RIDGE, linear_design, linear_features
from neuralucb.estimators.cover import cover
from neuralucb.policy import Policy, guard
from neuralucb.settings import integer, number

__all__ = ["ONLINE_COVER"]


def online_cover(task: Task, settings: Mapping[str, Any]) -> Policy:
    """Online Cover: n greedy policies over ridge regressions, each paid for arms that those before it leave out.

    The practical algorithm of Agarwal et al. 2014, as Bietti, Agarwal & Langford 2021 describe it.
    A round costs O((K + n) d²), and O(n K d²) where arms share a context. Its propensities are exact, and none is 0.
    Departs from the paper in: ridge regressions on the arm played, weighted by 1/p, where the text learns
    cost-sensitive classifiers from estimates for all arms.
    """
    features = linear_features(task)
    made = cover(
        features, linear_design(task, settings), policies=settings["policies"], bonus=settings["bonus"],
        exploration=settings["exploration"],
    )  # fmt: skip
    return guard(made, features.check)


ONLINE_COVER = Algorithm(
    "online-cover",
    "a few greedy policies, each paid for arms that those before it leave out",
    "Agarwal, Hsu, Kale, Langford, Li & Schapire 2014; Bietti, Agarwal & Langford 2021",
    "ridge regressions on the arm played, weighted by 1/p, where the text learns cost-sensitive classifiers",
    (
        number("exploration", "c", 1.0, "scale of ε_t = min(1/K, c/√(Kt))", above=0, grid=(0.1, 0.3, 1)),
        number("bonus", "ψ", 0.1, "reward for what other policies leave out", least=0, grid=(0.01, 0.1, 1)),
        integer("policies", "n", 4, "size of the cover"),
        RIDGE._replace(grid=()),
        PRECISION,
    ),
    online_cover,
    title="Online Cover",
    family="related",
)
