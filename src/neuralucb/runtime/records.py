"""Records that fit a screen: what `print` shows of one, however large the arrays in it are."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from textwrap import fill
from typing import Any, TypeVar

__all__ = ["brief", "show"]

Record = TypeVar("Record", bound=type)

LINE = 100
"""Letters that a record may have on one line; a longer one has a line per field."""

VALUE = 80
"""Letters that one field may have."""

ENTRIES = 6
"""Entries of a tuple, a dictionary or an array that are shown; of more, how many there are."""

FIELDS = 22
"""Fields that are shown of a record: a screen has 24 lines."""

MOST = 1000
"""Letters that a record may have at all."""


def brief(cls: Record) -> Record:
    """A class decorator: the `repr` of this NamedTuple or dataclass names its fields, but no long values.

    Example:
        >>> from typing import NamedTuple
        >>> import numpy as np
        >>> @brief
        ... class Sample(NamedTuple):
        ...     x: np.ndarray
        ...     n: int
        >>> Sample(np.zeros((1000, 5)), 3)
        Sample(x=float64[1000, 5], n=3)
    """
    setattr(cls, "__repr__", _repr)  # noqa: B010, a checker would refuse an assignment
    return cls


def show(name: str, fields: Mapping[str, Any], *, dense: bool = False) -> str:
    """`name(field=value, …)` with every value cut to a part of a line, and at most 1000 letters in all.

    A dense one has as many fields on a line as fit, for records with many small ones.
    """
    parts = [f"{field}={_value(value)}" for field, value in fields.items()]
    if dense:
        text = fill(f"{name}({', '.join(parts)})", LINE, subsequent_indent="    ", break_on_hyphens=False)
        return _cut(text, MOST)
    if len(parts) > FIELDS:
        parts = [*parts[: FIELDS - 1], f"… {len(parts) - FIELDS + 1} more"]
    line = f"{name}({', '.join(parts)})"
    if len(line) <= LINE:
        return line
    room = (MOST - len(name)) // len(parts) - len("    ,\n")  # so that the last field is seen too
    return "\n".join([f"{name}(", *(f"    {_cut(part, max(room, 20))}," for part in parts), ")"])


def _repr(self: Any) -> str:
    return show(type(self).__name__, _fields(self))


def _fields(record: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(record):
        return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    return dict(zip(record._fields, record, strict=True))


def _value(value: Any, room: int = VALUE) -> str:
    """One value, on one line."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return _array(value)
    if isinstance(value, type):
        return value.__name__
    if callable(value) and not hasattr(value, "_fields") and not dataclasses.is_dataclass(value):
        return _function(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return repr(_cut(value, room))
    if hasattr(value, "_fields") or dataclasses.is_dataclass(value):
        return _nested(value, room)
    if isinstance(value, Mapping):
        entries = [f"{_cut(repr(key), 20)}: {_value(entry, room // 2)}" for key, entry in _first(value.items())]
        return _joined("{}", entries, len(value), room) or f"<{len(value)} entries>"
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes | range):
        ends = "()" if isinstance(value, tuple) else "{}" if isinstance(value, set | frozenset) else "[]"
        entries = [_value(entry, room // 2) for entry in _first(value)]
        return _joined(ends, entries, len(value), room) or f"<{len(value)} of {type(_first(value)[0]).__name__}>"
    return _cut(" ".join(repr(value).split()), room)


def _array(value: Any) -> str:
    """A short one by its numbers, a long one, or one without numbers yet, by its type and shape."""
    kind = f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    size, readable = math.prod(value.shape), getattr(value.dtype, "kind", "V") in "biufSU"
    if len(value.shape) > 1 or size > ENTRIES or not readable:
        return kind
    try:
        numbers = value.tolist()
    except Exception:  # under jit, a shape alone, or given away to a compiled call: it has no numbers
        return kind
    return _value(numbers)


def _function(value: Callable[..., Any]) -> str:
    name = getattr(value, "__name__", None) or type(value).__name__
    return f"<{'function' if name == '<lambda>' else name}>"


def _nested(record: Any, room: int) -> str:
    """A record within a record: its name, and what fits."""
    fields = _fields(record).items()
    text = f"{type(record).__name__}({', '.join(f'{name}={_value(value, room // 2)}' for name, value in fields)})"
    return text if len(text) <= room else f"{type(record).__name__}(…)"


def _first(values: Iterable[Any]) -> list[Any]:
    return list(islice(values, ENTRIES))


def _joined(ends: str, entries: Sequence[str], count: int, room: int) -> str:
    """All on one line; empty if there is no room."""
    shown = ", ".join(entries) + ("," if ends == "()" and count == 1 else "")
    if count > len(entries):
        shown += f", … {count - len(entries)} more"
    text = f"{ends[0]}{shown}{ends[1]}"
    return text if len(text) <= room else ""


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"
