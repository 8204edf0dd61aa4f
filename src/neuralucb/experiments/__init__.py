"""Experiments: runs over many seeds and settings, and their statistics. Needs the extra `experiments`."""

from neuralucb.experiments.plans import Plan, plan, plan_grid, with_baselines
from neuralucb.experiments.results import Result, Summary
from neuralucb.experiments.runs import compare, play, run, run_grid

__all__ = [
    "Plan",
    "Result",
    "Summary",
    "compare",
    "plan",
    "plan_grid",
    "play",
    "run",
    "run_grid",
    "with_baselines",
]
