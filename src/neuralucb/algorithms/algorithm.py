"""An algorithm as a record: its recipe and settings, its citation, and where it departs from the paper."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from neuralucb.policy import Policy
from neuralucb.runtime.records import brief
from neuralucb.settings import Setting

__all__ = ["Algorithm", "Recipe", "Task"]


class Task(NamedTuple):
    """What a recipe may know about the problem."""

    dim: int
    """d, numbers in a context"""
    rounds: int | None = None
    """T, an input of the paper's algorithms; None where it is not known"""
    shared_by: int | None = None
    """the number of arms, where contexts are a `Slot`: one x that all arms share; None where each arm has its own"""


Recipe: TypeAlias = Callable[[Task, Mapping[str, Any]], Policy]
"""task, settings by name -> Policy; numbers among the settings may be traced"""


@brief
class Algorithm(NamedTuple):
    """A recipe by name, its settings with the paper's grids, and where it departs from the paper."""

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
