"""BootstrappedNN: networks on samples of the data, one of which decides (Efron 1982; Riquelme et al. 2018)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    DEPARTS,
    NETWORK,
    PULL,
    TRAINING,
    check_training,
    in_units,
    network_for,
    training_for,
)
from neuralucb.estimators.bootstrap import bootstrap
from neuralucb.policy import Policy
from neuralucb.settings import integer, number

__all__ = ["BOOTSTRAPPED_NN"]


def bootstrapped_nn(task: Task, settings: Mapping[str, Any]) -> Policy:
    """BootstrappedNN: networks on samples of the data, one of which decides greedily (Riquelme et al. 2018).

    A round costs K evaluations of every network; a training trains all networks side by side.
    Departs from the paper in: `gaussian` θ_0 by default; `paper` on request.
    """

    def make(task: Task) -> Policy:
        return bootstrap(
            network_for(task, settings),
            training_for(task, settings),
            networks=settings["networks"],
            inclusion=settings["inclusion"],
            start=settings["start"],
        )

    return in_units(task, settings, make)


BOOTSTRAPPED_NN = Algorithm(
    "bootstrapped-nn",
    "ten networks on samples of the data, one of which decides",
    "Efron 1982; Riquelme, Tucker & Snoek 2018",
    DEPARTS,
    (
        integer("networks", "q", 10, "networks trained side by side"),
        number("inclusion", "p", 0.8, "probability that an observation is a network's", above=0, most=1),
        PULL,
        *TRAINING,
        *NETWORK,
    ),
    bootstrapped_nn,
    check_training,
    title="BootstrappedNN",
    family="paper",
)
