"""The problems by name, with their settings."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from neuralucb.problems.contract import Problem
from neuralucb.problems.synthetic import synthetic
from neuralucb.settings import Setting, integer, number, read_settings

__all__ = ["PROBLEMS", "Definition", "build_problem", "find_problem"]


class Definition(NamedTuple):
    """A problem's name, one line about it, and how to make it."""

    name: str
    summary: str
    settings: tuple[Setting, ...]
    make: Callable[..., Problem]


SYNTHETIC = (
    integer("dim", "d", 20, "numbers in a context"),
    integer("arms", "K", 4, "arms to choose from", least=2),
    number("noise", "ξ", 1.0, "standard deviation of the noise", least=0)._replace(traced=False),
)

PROBLEMS: dict[str, Definition] = {
    name: Definition(name, summary, SYNTHETIC, partial(synthetic, name))
    for name, summary in {
        "h1": "10(xᵀa)², a quadratic along one direction",
        "h2": "xᵀAᵀAx, a quadratic in all directions",
        "h3": "cos(3xᵀa), a cosine along one direction",
    }.items()
}


def find_problem(name: str) -> Definition:
    """The problem of that name; an unknown one lists the known."""
    if name not in PROBLEMS:
        raise ValueError(f"problem {name!r} is not known; known: {', '.join(PROBLEMS)}.")
    return PROBLEMS[name]


def build_problem(name: str, settings: Mapping[str, Any]) -> Problem:
    """The named problem with these settings."""
    definition = find_problem(name)
    return definition.make(**read_settings(definition.settings, settings, of=name))
