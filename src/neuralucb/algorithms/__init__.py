"""The algorithms by name. Add your own: `ALGORITHMS["mine"] = Algorithm(…)`, and every command and test knows it."""

from functools import lru_cache
from numbers import Integral
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.baselines import ORACLE, UNIFORM
from neuralucb.algorithms.chance import NEURAL_SQUARE_CB, NEURAL_TS
from neuralucb.algorithms.classical import GLM_UCB, KERNEL_UCB, LIN_UCB
from neuralucb.algorithms.fixed import NEURAL_EPSILON_GREEDY0, NEURAL_UCB0
from neuralucb.algorithms.trained import BOOTSTRAPPED_NN, NEURAL_EPSILON_GREEDY, NEURAL_UCB
from neuralucb.policy import Origin, Policy
from neuralucb.runtime.errors import InputError
from neuralucb.settings import check_integer, read_settings

__all__ = ["ALGORITHMS", "Algorithm", "Task", "build", "find_algorithm"]

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        NEURAL_UCB,
        NEURAL_EPSILON_GREEDY,
        NEURAL_UCB0,
        NEURAL_EPSILON_GREEDY0,
        BOOTSTRAPPED_NN,
        LIN_UCB,
        GLM_UCB,
        KERNEL_UCB,
        NEURAL_TS,
        NEURAL_SQUARE_CB,
        UNIFORM,
        ORACLE,
    )
}


def build(name: str, *, dim: int, rounds: int | None = None, shared_by: int | None = None, **settings: Any) -> Policy:
    """The named algorithm as a policy for contexts of `dim` numbers: `build("neural-ucb", dim=20, width=100)`.

    rounds     T, if it is known; algorithms that gain from it use it, and must then not be played longer.
    shared_by  the number of arms, if they share one context: contexts are then `Slot(x, arm)`.
    """
    algorithm = find_algorithm(name)
    values = read_settings(algorithm.settings, settings, of=name)
    if not isinstance(dim, Integral) or dim < 1:
        raise InputError(f"dim must be a whole number of at least 1, got {dim!r}.")
    if rounds is not None:
        rounds = check_integer("rounds", rounds, 1)
    if shared_by is not None:
        shared_by = check_integer("shared_by", shared_by, 1)
    task = Task(int(dim), rounds, shared_by)
    algorithm.check(task, values)
    chosen = tuple(values.items())
    return _make(algorithm, task, chosen)._replace(origin=Origin(name, *task, chosen))


@lru_cache(maxsize=64)
def _make(algorithm: Algorithm, task: Task, settings: tuple[tuple[str, Any], ...]) -> Policy:
    """One policy for the same question, so that what was compiled for it is used again."""
    return algorithm.recipe(task, dict(settings))


def find_algorithm(name: str) -> Algorithm:
    """The algorithm of that name; an unknown one lists the known."""
    if name not in ALGORITHMS:
        raise InputError(f"algorithm {name!r} is not known; known: {', '.join(ALGORITHMS)}.")
    return ALGORITHMS[name]
