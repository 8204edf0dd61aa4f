"""Experiments: runs of many seeds and settings, their statistics, tables and figures. Needs the extra `experiments`."""

from neuralucb.experiments.results import Result, Summary
from neuralucb.experiments.running import Plan, compare, plan, play, run, run_grid, with_scale

__all__ = ["Plan", "Result", "Summary", "compare", "plan", "play", "run", "run_grid", "with_scale"]
