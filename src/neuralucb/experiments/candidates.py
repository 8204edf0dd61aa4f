"""The settings that tuning chooses from: a grid of values, or draws from ranges."""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neuralucb.algorithms import find_algorithm
from neuralucb.runtime.errors import InputError
from neuralucb.settings import Setting, check_integer

__all__ = ["SAMPLES", "candidates"]

SAMPLES = 32
"""How many draws are made from ranges, where their number is not given."""

MOST = 10_000
"""A grid of more settings than this is taken for a typing error."""

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"


def candidates(
    algorithm: str, grid: Mapping[str, Any] | None, *, samples: int | None = None, seed: int = 0
) -> list[dict[str, Any]]:
    """All combinations of a grid's values; or `samples` of them, drawn at random, where one is a range.

    Args:
        algorithm: Whose settings they are.
        grid: By setting, a list of values, or a range such as "1e-4..1e-1", from which numbers are drawn evenly on a
            logarithmic scale. None for the algorithm's own grid.
        samples: How many to draw; None for every combination, or 32 if there is a range.
        seed: Of the draws.

    Raises:
        InputError: A setting is not the algorithm's, a value cannot be read, or there are fewer than two settings.
    """
    known = {setting.name: setting for setting in find_algorithm(algorithm).settings}
    given = {name: list(each.grid) for name, each in known.items() if each.grid} if grid is None else dict(grid)
    if grid is None and not given:
        raise InputError(
            f"grid must be given for {algorithm}, which has none of its own; its settings: {_words(known)}."
        )
    read: dict[str, list[Any] | tuple[float, float]] = {}
    for name, values in given.items():
        if name not in known:
            raise InputError(f"grid: {name} is not a setting of {algorithm}, which has: {_words(known)}.")
        read[name] = _read(known[name], values)
    ranges = [name for name, values in read.items() if isinstance(values, tuple)]
    count = None if samples is None else check_integer("samples", samples, 2)
    if ranges or count is not None:
        found = _draw(known, read, count or SAMPLES, np.random.default_rng(seed))
    else:
        size = math.prod(len(values) for values in read.values())
        if size > MOST:
            raise InputError(f"grid must have at most {MOST} combinations, got {size}; take fewer, or samples.")
        found = [dict(zip(read, values, strict=True)) for values in itertools.product(*read.values())]
    if len(found) < 2:
        raise InputError(
            f"grid must have at least two settings to choose from, got {found or 'none'}; give a setting more "
            f"values, such as {next(iter(given), 'exploration')}=0.01,0.1,1."
        )
    return found


def _read(setting: Setting, values: Any) -> list[Any] | tuple[float, float]:
    """The values of a setting, checked; or the ends of a range."""
    if isinstance(values, str):
        match = re.fullmatch(rf"\s*({NUMBER})\s*\.\.\s*({NUMBER})\s*", values)
        if match is None:
            raise InputError(
                f"grid: {setting.name} must be a list of values, or a range such as 1e-4..1e-1, got {values!r}."
            )
        low, high = float(match[1]), float(match[2])
        if not 0 < low < high:
            raise InputError(f"grid: the range of {setting.name} must begin above 0 and end later, got {values!r}.")
        if isinstance(setting.default, bool | str):
            raise InputError(f"grid: {setting.name} has no ranges, since it is {setting.allowed}, got {values!r}.")
        for end in (low, high):
            _value(setting, int(end) if isinstance(setting.default, int) else end)
        return low, high
    if not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
        raise InputError(f"grid: {setting.name} must be a list of values, got {values!r}.")
    found = [_value(setting, value) for value in values]
    twice = [value for place, value in enumerate(found) if value in found[:place]]
    if twice:
        raise InputError(f"grid: {setting.name} has the value {twice[0]!r} twice; keep one.")
    return found


def _value(setting: Setting, value: Any) -> Any:
    try:
        return setting.read(value)
    except InputError as problem:
        raise InputError(f"grid: {setting.name} {str(problem).rstrip('.')}, got {value!r}.") from None


def _draw(
    known: Mapping[str, Setting], read: Mapping[str, Any], count: int, generator: np.random.Generator
) -> list[dict[str, Any]]:
    """Different combinations, as many as wanted or as there are, within reason."""
    found: list[dict[str, Any]] = []
    for _ in range(100 * count):
        point = {name: _one(known[name], values, generator) for name, values in read.items()}
        if point not in found:
            found.append(point)
        if len(found) == count:
            break
    return found


def _one(setting: Setting, values: Any, generator: np.random.Generator) -> Any:
    if isinstance(values, list):
        return values[generator.integers(len(values))]
    drawn = float(np.exp(generator.uniform(*np.log(values))))
    return round(drawn) if isinstance(setting.default, int) else float(f"{drawn:.4g}")


def _words(known: Mapping[str, Setting]) -> str:
    return ", ".join(known) or "none"
