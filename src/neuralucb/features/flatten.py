"""Nested objects as names and numbers: `context/User/age` with its number, `context/User/country=de` with 1."""

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from neuralucb.runtime.errors import InputError

__all__ = ["Alike", "Flat", "check_name", "flatten", "objects_of", "prefixed", "read_alike", "with_products"]

LONGEST = 512
"""Characters of a name, at most: a longer one is text, not a category."""

DEPTH = 16
"""Levels of nesting, at most."""

KINDS = 4096
"""Kinds of objects whose names are remembered."""

NUMBERS = frozenset((int, float))


class Flat(NamedTuple):
    """The features of one object."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    missing: int = 0
    """how many were null"""


class Alike(NamedTuple):
    """Objects that have the same keys, in one order, and numbers alone: the usual arms, read all at once."""

    keys: tuple[str, ...]
    numbers: np.ndarray
    """[objects, keys] float64"""


def read_alike(values: Sequence[Any], *, from_json: bool = False) -> Alike | None:
    """Objects that are alike; None where they are not.

    from_json  whether they were parsed from JSON, whose numbers are of two types only: that is twice as fast
    """
    if not values or not values[0] or set(map(type, values)) != {dict}:
        return None
    keys = tuple(values[0])
    if list(map(tuple, values)).count(keys) != len(values):
        return None
    pack = struct.Struct(f"{len(keys)}d").pack  # a tenth of the time of NumPy's reading of a list
    try:
        read = np.frombuffer(b"".join([pack(*value.values()) for value in values]))
    except (OverflowError, struct.error):  # an integer beyond all floats; no number
        return None
    # of JSON's values it takes true and false for numbers, too, as 1 and 0; most objects have neither of these
    is_plain = from_json and ((read != 0) & (read != 1)).all()
    if not is_plain and not NUMBERS.issuperset(map(type, chain.from_iterable([value.values() for value in values]))):
        return None
    return Alike(keys, read.reshape(len(values), -1))


def objects_of(alike: Alike) -> list[dict[str, float]]:
    """The objects, whose integers are floats now."""
    return [dict(zip(alike.keys, row, strict=True)) for row in alike.numbers.tolist()]


def flatten(value: Any, prefix: str) -> Flat:
    """Names and numbers of an object; the usual kind, of numbers alone, is fast."""
    if value.__class__ is dict and value:
        numbers = tuple(value.values())
        if NUMBERS.issuperset(map(type, numbers)):
            known = prefixed(prefix, tuple(value))
            if known is not None:
                return Flat(known, numbers)
    names: list[str] = []
    values: list[float] = []
    missing = _flatten(value, prefix, names, values, 0)
    return Flat(tuple(names), tuple(values), missing)


def with_products(shared: Flat, own: Flat, interactions: tuple[tuple[str, str], ...]) -> Flat:
    """An arm's features with their products."""
    names, values = list(own.names), list(own.values)
    every = [*zip(shared.names, shared.values, strict=True), *zip(own.names, own.values, strict=True)]
    for first, second in interactions:
        for name, value in every:
            if _is_below(name, first):
                for other, factor in every:
                    if _is_below(other, second):
                        names.append(check_name(f"{name}*{other}"))
                        values.append(float(value) * float(factor))
    return Flat(tuple(names), tuple(values), own.missing)


@lru_cache(maxsize=KINDS)
def prefixed(prefix: str, keys: tuple[str, ...]) -> tuple[str, ...] | None:
    """The names of an object's numbers; None for keys that are ignored or refused, which `flatten` does."""
    names = tuple(f"{prefix}/{key}" for key in keys)
    return (
        None if any(type(key) is not str or key[:1] == "_" for key in keys) or max(map(len, names)) > LONGEST else names
    )


def check_name(name: str) -> str:
    """The name, unless it is too long."""
    if len(name) > LONGEST:
        raise InputError(
            f"a feature and its category must have at most {LONGEST} characters, got {len(name)} in {name!r:.60}; turn "
            "free text into numbers or words first."
        )
    return name


def _flatten(value: Any, name: str, names: list[str], values: list[float], depth: int) -> int:
    """Collect names and numbers of a value; returns how many features were null."""
    if depth > DEPTH:
        raise InputError(f"features must be nested at most {DEPTH} deep, got more at {name!r:.80}.")
    if value is None:
        return int(depth > 0)
    if type(value) is dict:
        return sum(_flatten(inner, _below(name, key), names, values, depth + 1) for key, inner in _entries(value))
    if type(value) is list:
        return sum(_flatten_item(inner, name, index, names, values, depth) for index, inner in enumerate(value))
    if depth == 0:
        raise InputError(f"features of the {name} must be an object, or a list of objects, got {value!r:.80}.")
    if type(value) is bool:
        if value:
            names.append(name)
            values.append(1.0)
    elif type(value) in NUMBERS:
        names.append(name)
        values.append(value)
    elif type(value) is str:
        names.append(check_name(f"{name}={value}"))
        values.append(1.0)
    elif isinstance(value, np.longdouble):  # Python has no number for it
        return _flatten(float(value), name, names, values, depth)
    elif isinstance(value, np.generic | np.ndarray):  # of a row of a DataFrame, say
        return _flatten(value.tolist(), name, names, values, depth)
    elif type(value) is tuple:
        return _flatten(list(value), name, names, values, depth)
    else:
        raise InputError(f"feature {name!r:.80} must be a number, a string, a boolean or a list, got {value!r:.80}.")
    return 0


def _flatten_item(value: Any, name: str, index: int, names: list[str], values: list[float], depth: int) -> int:
    """One item of a list: an object counts as part of the whole, anything else as one more number of a vector."""
    if type(value) is dict:
        return _flatten(value, name, names, values, depth + 1)
    if depth == 0:
        raise InputError(f"features of the {name} must be an object, or a list of objects, got {value!r:.80}.")
    return _flatten(value, f"{name}[{index}]", names, values, depth + 1)


def _entries(value: dict[Any, Any]) -> Iterable[tuple[str, Any]]:
    for key, inner in value.items():
        if type(key) is not str:
            raise InputError(f"names of features must be strings, got {key!r:.80}.")
        if key[:1] != "_":
            yield key, inner


def _below(name: str, key: str) -> str:
    return check_name(f"{name}/{key}")


def _is_below(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith((f"{prefix}/", f"{prefix}=", f"{prefix}["))
