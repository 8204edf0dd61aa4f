"""Neural contextual bandits: NeuralUCB (Zhou, Li & Gu 2020), its baselines and its experiments."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from neuralucb.algorithms import build
    from neuralucb.experiments import compare, run, run_grid
    from neuralucb.online import Decision, OnlineBandit
    from neuralucb.policy import Choice, Estimator, Info, Policy, Prediction
    from neuralucb.problems import Problem, Round, labelled, synthetic
    from neuralucb.runtime.errors import InputError, StorageError
    from neuralucb.schedules import read_schedule
    from neuralucb.simulation import Trace, simulate

_HOMES = {
    "algorithms": ("build",),
    "experiments": ("compare", "run", "run_grid"),
    "online": ("Decision", "OnlineBandit"),
    "policy": ("Choice", "Estimator", "Info", "Policy", "Prediction"),
    "problems": ("Problem", "Round", "labelled", "synthetic"),
    "runtime.errors": ("InputError", "StorageError"),
    "schedules": ("read_schedule",),
    "simulation": ("Trace", "simulate"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Choice",
    "Decision",
    "Estimator",
    "Info",
    "InputError",
    "OnlineBandit",
    "Policy",
    "Prediction",
    "Problem",
    "Round",
    "StorageError",
    "Trace",
    "build",
    "compare",
    "labelled",
    "read_schedule",
    "run",
    "run_grid",
    "simulate",
    "synthetic",
]


def __getattr__(name: str) -> Any:
    """Import on first use, so that `neuralucb --help` does not wait for JAX."""
    if name not in _HOME:
        raise AttributeError(f"module 'neuralucb' has no attribute {name!r}")
    return getattr(import_module(f"neuralucb.{_HOME[name]}"), name)
