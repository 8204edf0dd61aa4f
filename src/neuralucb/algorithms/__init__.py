"""Algorithms: one recipe per file, and the registry that finds them by name."""

from neuralucb.algorithms.algorithm import FAMILIES, Algorithm, Task
from neuralucb.algorithms.networks import NETWORKS, NamedNetwork, register_network
from neuralucb.algorithms.registry import ALGORITHMS, build, find_algorithm, rebuild, register_algorithm

__all__ = [
    "ALGORITHMS",
    "FAMILIES",
    "NETWORKS",
    "Algorithm",
    "NamedNetwork",
    "Task",
    "build",
    "find_algorithm",
    "rebuild",
    "register_algorithm",
    "register_network",
]
