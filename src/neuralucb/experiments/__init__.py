"""Experiments: runs over many seeds and settings, and their statistics. Needs the extra `experiments`."""

from neuralucb.experiments.comparisons import Aggregate, Comparison, Difference, Improvement, Rank
from neuralucb.experiments.plans import Plan, plan, plan_grid, with_baselines
from neuralucb.experiments.results import Result, Summary, Traces
from neuralucb.experiments.runs import compare, play, run, run_grid
from neuralucb.experiments.statistics import Estimate

__all__ = [
    "Aggregate",
    "Comparison",
    "Difference",
    "Estimate",
    "Improvement",
    "Plan",
    "Rank",
    "Result",
    "Summary",
    "Traces",
    "compare",
    "plan",
    "plan_grid",
    "play",
    "run",
    "run_grid",
    "with_baselines",
]
