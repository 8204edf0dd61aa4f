"""Sweeps: spec → batches → engine → store → selection → report. Needs the extra `experiments`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuralucb.sweeps.callbacks import Callback, FinishedRun
    from neuralucb.sweeps.engine import Job, prepare, run_sweep
    from neuralucb.sweeps.paper import paper_sweep
    from neuralucb.sweeps.report import Best, Report, read_report
    from neuralucb.sweeps.results import SweepResult, sweep
    from neuralucb.sweeps.spec import Part, Sweep
    from neuralucb.sweeps.store import Failure, Store
    from neuralucb.sweeps.toml import as_toml, read_sweep
    from neuralucb.sweeps.trackers import MLflow, TensorBoard, WandB
    from neuralucb.sweeps.tuning import Tuned, tune
    from neuralucb.sweeps.workers import Event

_HOMES = {
    "callbacks": ("Callback", "FinishedRun"),
    "engine": ("Job", "prepare", "run_sweep"),
    "paper": ("paper_sweep",),
    "report": ("Best", "Report", "read_report"),
    "results": ("SweepResult", "sweep"),
    "spec": ("Part", "Sweep"),
    "store": ("Failure", "Store"),
    "toml": ("as_toml", "read_sweep"),
    "trackers": ("MLflow", "TensorBoard", "WandB"),
    "tuning": ("Tuned", "tune"),
    "workers": ("Event",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Best",
    "Callback",
    "Event",
    "Failure",
    "FinishedRun",
    "Job",
    "MLflow",
    "Part",
    "Report",
    "Store",
    "Sweep",
    "SweepResult",
    "TensorBoard",
    "Tuned",
    "WandB",
    "as_toml",
    "paper_sweep",
    "prepare",
    "read_report",
    "read_sweep",
    "run_sweep",
    "sweep",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Import on first use: `neuralucb.sweep` and the callbacks must not bring pyarrow along."""
    if name not in _HOME:
        raise AttributeError(f"module 'neuralucb.sweeps' has no attribute {name!r}")
    return getattr(import_module(f"neuralucb.sweeps.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
