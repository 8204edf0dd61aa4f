"""Points: one combination of settings, the preset's and the defaults beside it, checked alone and together."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from neuralucb.algorithms import Algorithm, Task, find_algorithm
from neuralucb.presets import OF_DATA, Bundle, find_preset
from neuralucb.problems import PROBLEMS, Definition
from neuralucb.settings import read_settings

__all__ = ["Point", "find_bundle", "read_point", "shape_of"]


class Point(NamedTuple):
    """One combination of settings: the algorithm's and the problem's, checked and complete."""

    algorithm: dict[str, Any]
    problem: dict[str, Any]


def read_point(
    algorithm: str, definition: Definition, given: Mapping[str, Any], preset: str | None, rounds: int
) -> Point:
    """The given settings, the preset's, the defaults: sorted by owner and checked, also together."""
    recipe, problem = find_algorithm(algorithm), definition.name
    of_problem = {setting.name for setting in definition.settings}
    of_algorithm = {setting.name for setting in recipe.settings}
    unknown = sorted(set(given) - of_problem - of_algorithm)
    if unknown:
        raise ValueError(
            f"{', '.join(unknown)}: not a setting of {algorithm} ({_names(recipe.settings)}) "
            f"nor of {problem} ({_names(definition.settings)})."
        )
    usual = find_bundle(definition, preset).settings_for(trains="steps" in of_algorithm)
    lost = sorted(OF_DATA & set(usual)) if definition.given else []
    if lost:
        words = ", ".join(f"{name}={usual[name]!r}" for name in lost)
        raise ValueError(
            f"the preset needs {words}, which a problem given ready made cannot take; make it so yourself."
        )
    chosen = {**usual, **given}
    world = read_settings(definition.settings, {k: v for k, v in chosen.items() if k in of_problem}, of=problem)
    settings = read_settings(recipe.settings, {k: v for k, v in chosen.items() if k in of_algorithm}, of=algorithm)
    made = definition.make(**world)
    if made.limit is not None and rounds > made.limit:
        raise ValueError(
            f"rounds must be at most {made.limit}, the rows of {problem}, got {rounds}; "
            "play fewer, or begin again after the last row: --repeat, in Python repeat=True, in a sweep's file "
            "settings = { repeat = true }."
        )
    recipe.check(Task(made.dim, rounds, made.shared_by), settings)
    return Point(settings, world)


def find_bundle(problem: Definition, preset: str | None) -> Bundle:
    """Schedule and settings of a preset for a problem; a file that happens to be called magic is not magic."""
    known = any(problem is each for each in PROBLEMS.values())
    return find_preset(preset, shared=problem.shared).bundle(problem.name if known else None, shared=problem.shared)


def shape_of(recipe: Algorithm, point: Point) -> tuple[Any, ...]:
    """What must be equal for two points to share a compiled program."""
    traced = {setting.name for setting in recipe.settings if setting.traced}
    return (tuple(item for item in point.algorithm.items() if item[0] not in traced), tuple(point.problem.items()))


def _names(settings: Sequence[Any]) -> str:
    return ", ".join(setting.name for setting in settings)
