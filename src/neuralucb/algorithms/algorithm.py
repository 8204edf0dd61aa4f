"""An algorithm as a record: its recipe and settings, its citation, and where it departs from the paper."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from neuralucb.policy import Context, Policy, check_slot, check_vector
from neuralucb.runtime.records import brief
from neuralucb.settings import Setting

__all__ = ["FAMILIES", "Algorithm", "Recipe", "Task", "context_check"]

FAMILIES: dict[str, str] = {
    "default": "ours, the default",
    "paper": "the paper's, and its baselines",
    "discussed": "discussed in the paper",
    "related": "related work",
    "later": "after the paper",
    "reference": "for scale",
    "": "yours",
}
"""In which part of `neuralucb list` an algorithm stands, in order; those that users register have none.

Example:
    >>> FAMILIES["default"]
    'ours, the default'
"""


class Task(NamedTuple):
    """What a recipe may know about the problem.

    Example:
        >>> Task(dim=5).shared_by is None  # each arm has a context of its own
        True
    """

    dim: int
    """d, numbers in a context"""
    rounds: int | None = None
    """T, an input of the paper's algorithms; None where it is not known"""
    shared_by: int | None = None
    """the number of arms, where contexts are a `Slot`: one x that all arms share; None where each arm has its own"""


def context_check(task: Task) -> Callable[[Context], None]:
    """A check that a context of one arm is what the task says."""
    return check_vector(task.dim) if task.shared_by is None else check_slot(task.dim, task.shared_by)


Recipe: TypeAlias = Callable[[Task, Mapping[str, Any]], Policy]
"""task, settings by name -> Policy; numbers among the settings may be traced"""


@brief
class Algorithm(NamedTuple):
    """A recipe by name, its settings with the paper's grids, and where it departs from the paper.

    Example:
        >>> from neuralucb.algorithms import ALGORITHMS
        >>> algorithm = ALGORITHMS["neural-ucb"]
        >>> algorithm.title, algorithm.family
        ('NeuralUCB', 'paper')
    """

    name: str
    summary: str
    citation: str
    departs: str
    settings: tuple[Setting, ...]
    recipe: Recipe
    check: Callable[[Task, Mapping[str, Any]], None] = lambda task, settings: None
    """Raises InputError for settings that are each allowed but do not go together."""
    sees_expected: bool = False
    """Whether contexts come as (context, expected reward): only for the oracle."""
    title: str = ""
    """The name as its paper writes it, for tables and figures; the name itself if empty."""
    family: str = ""
    """One of FAMILIES."""
