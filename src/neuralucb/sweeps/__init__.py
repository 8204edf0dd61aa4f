"""Sweeps: spec → batches → engine → store → selection → report. Needs the extra `experiments`."""

from neuralucb.sweeps.engine import Job, prepare, run_sweep
from neuralucb.sweeps.paper import paper_sweep
from neuralucb.sweeps.report import Report, read_report
from neuralucb.sweeps.spec import Part, Sweep
from neuralucb.sweeps.store import Failure, Store
from neuralucb.sweeps.toml import as_toml, read_sweep
from neuralucb.sweeps.workers import Event

__all__ = [
    "Event",
    "Failure",
    "Job",
    "Part",
    "Report",
    "Store",
    "Sweep",
    "as_toml",
    "paper_sweep",
    "prepare",
    "read_report",
    "read_sweep",
    "run_sweep",
]
