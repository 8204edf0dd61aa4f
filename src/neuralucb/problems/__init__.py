"""Problems: where contexts and rewards come from. The same seed gives every algorithm the same problem."""

from neuralucb.problems.functions import from_function
from neuralucb.problems.labelled import labelled
from neuralucb.problems.problem import Problem, Round, check_problem, reveal
from neuralucb.problems.registry import PROBLEMS, Definition, build_problem, find_problem, from_file, register_problem
from neuralucb.problems.rewards import rewards
from neuralucb.problems.synthetic import synthetic

__all__ = [
    "PROBLEMS",
    "Definition",
    "Problem",
    "Round",
    "build_problem",
    "check_problem",
    "find_problem",
    "from_file",
    "from_function",
    "labelled",
    "register_problem",
    "reveal",
    "rewards",
    "synthetic",
]
