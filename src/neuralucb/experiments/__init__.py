"""Experiments: runs of many seeds and settings, their statistics, tables and figures. Needs the extra `experiments`."""

from neuralucb.experiments.results import Result, Summary
from neuralucb.experiments.running import compare, run, run_grid

__all__ = ["Result", "Summary", "compare", "run", "run_grid"]
