"""Algorithms: one recipe per file, and the registry that finds them by name."""

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.registry import ALGORITHMS, build, find_algorithm, rebuild

__all__ = ["ALGORITHMS", "Algorithm", "Task", "build", "find_algorithm", "rebuild"]
