"""Deep ensemble: networks from other starts, one of which decides (Lakshminarayanan et al. 2017)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    GAUSSIAN_NETWORK,
    PULL,
    TRAINING,
    check_training,
    in_units,
    network_for,
    training_for,
)
from neuralucb.estimators.ensemble import ensemble, whole
from neuralucb.policy import Policy
from neuralucb.settings import integer

__all__ = ["DEEP_ENSEMBLE"]

DEPARTS = (
    "a member that decides alone, as in ensemble sampling, where the text averages; squared errors, without a variance "
    "that the network predicts and without adversarial examples; and a pull of each member to its own θ_0"
)


def deep_ensemble(task: Task, settings: Mapping[str, Any]) -> Policy:
    """Deep ensemble: networks that differ by θ_0 and minibatches alone (Lakshminarayanan et al. 2017); one decides.

    It differs from BootstrappedNN in what the networks see, all of the data, and in their starts, which are not 0: each
    is pulled to the function it began as, so that they agree where there are data, and nowhere else.
    A round costs K evaluations of every network; a training trains all networks side by side.
    Departs from the paper in: a member that decides alone, as in the ensemble sampling of Lu & Van Roy 2017, where the
    text averages; squared errors, without a variance that the network predicts and without adversarial examples; and a
    pull of each member to its own θ_0.
    """

    def make(task: Task) -> Policy:
        shape = {name: settings[name] for name in ("networks", "start")}
        return ensemble(network_for(task, settings), training_for(task, settings), view=whole, **shape)

    return in_units(task, settings, make)


DEEP_ENSEMBLE = Algorithm(
    "deep-ensemble",
    "networks from other starts on all data, one of which decides",
    "Lakshminarayanan, Pritzel & Blundell 2017; Lu & Van Roy 2017",
    DEPARTS,
    (integer("networks", "M", 5, "networks trained side by side"), PULL, *TRAINING, *GAUSSIAN_NETWORK),
    deep_ensemble,
    check_training,
    title="Deep ensemble",
    family="later",
)
