"""Perturbed-history exploration on a network: pseudo-rewards beside the observed ones, greedy (Kveton et al. 2020)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    NETWORK,
    PULL,
    TRAINING,
    check_training,
    in_units,
    network_for,
    training_for,
)
from neuralucb.estimators.ensemble import ensemble, pseudo_rewards
from neuralucb.policy import Policy
from neuralucb.settings import integer

__all__ = ["NEURAL_PERTURBED_HISTORY"]

DEPARTS = (
    "pseudo-rewards one deviation above or below the mean, where the text has 0 or 1 for rewards between them; and "
    "several networks that take turns at random between trainings, where the text fits one anew in every round"
)


def neural_perturbed_history(task: Task, settings: Mapping[str, Any]) -> Policy:
    """Perturbed history: a network fits rewards and random pseudo-rewards, greedy choice (Kveton et al. 2020).

        f minimises Σ_i [(f(x_i) - r_i)² + Σ_{j ≤ a} (f(x_i) - z_ij)²]/2 + λ‖θ - θ_0‖²/2,   z_ij drawn at every training

    up to the scale 1 + a, which moves no choice: it fits r_i + Σ_j (z_ij - r̄) with the pull λ/(1 + a). It differs from
    NPR in its noise, which is bounded and follows the spread of the rewards.
    A round costs K evaluations of every network; a training trains all networks side by side.
    Departs from the paper in: pseudo-rewards one deviation above or below the mean, where the text has 0 or 1 for
    rewards between them; and several networks that take turns at random between trainings, where the text fits one anew
    in every round.
    """

    def make(task: Task) -> Policy:
        count = settings["pseudo_rewards"]
        own = {**settings, "regularization": settings["regularization"] / (1 + count)}
        shape = {name: settings[name] for name in ("networks", "start")}
        return ensemble(network_for(task, own), training_for(task, own), view=pseudo_rewards(count), **shape)

    return in_units(task, settings, make)


NEURAL_PERTURBED_HISTORY = Algorithm(
    "neural-perturbed-history",
    "networks trained on rewards and random pseudo-rewards, greedy choice",
    "Kveton, Szepesvári, Ghavamzadeh & Boutilier 2020; "
    "on a network Kveton, Zaheer, Szepesvári, Li, Ghavamzadeh & Boutilier 2020",
    DEPARTS,
    (
        integer("pseudo_rewards", "a", 1, "pseudo-rewards for each reward")._replace(grid=(1, 2, 4)),
        integer("networks", "", 5, "networks trained side by side"),
        PULL,
        *TRAINING,
        *NETWORK,
    ),
    neural_perturbed_history,
    check_training,
    title="Neural PHE",
    family="discussed",
)
