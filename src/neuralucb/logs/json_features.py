"""Named features of JSON objects as columns: numbers as they are, words as one-hot, each name in a place of its own."""

from array import array
from collections.abc import Iterable
from itertools import chain
from operator import itemgetter
from struct import error, pack
from typing import Any

import numpy as np

from neuralucb.runtime.errors import InputError

__all__ = ["Features"]

MOST = 4096
"""Columns: more are identifiers, not features, and would fill the memory."""


LAYOUTS = 4096
"""Layouts that are remembered from chunk to chunk: words make a new one for every combination."""


class Features:
    """Rows of features, as objects bring them: a namespace's numbers keep its name, `User/age`.

    A word becomes a column of its own, `User/country=de`, that is 1 where it stands; a list becomes `User/history[0]`;
    true is 1, false and null are nothing. Objects with the same keys share a layout, which is looked up once.
    """

    def __init__(self) -> None:
        self.columns: dict[str, int] = {}
        self.layouts: list[np.ndarray] = []
        self._known: dict[Any, int] = {}
        self._last: tuple[Any, int] = (None, 0)
        self._flat = array("d")
        self._used: list[int] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in order of appearance."""
        return tuple(self.columns)

    def add(self, item: dict[str, Any]) -> None:
        """One row."""
        begin = len(self._flat)
        keys: list[tuple[str, Any]] = []
        try:
            for key, value in item.items():
                if _ignored(key):
                    continue
                if value.__class__ is dict:
                    self._flat.extend(value.values())
                    keys.append((key, tuple(value)))
                elif value.__class__ is list:
                    self._flat.extend(value)
                    keys.append((key, range(len(value))))
                else:
                    self._flat.append(value)
                    keys.append((key, None))
            self._used.append(self._known[tuple(keys)])
        except (KeyError, TypeError):  # not seen before, or not numbers alone
            del self._flat[begin:]
            self._with_words(item)

    def add_alike(self, items: list[dict[str, Any]], *, reserved: int) -> bool:
        """Many rows at once, if each has the namespaces and keys of the last, and `reserved` keys beside; or none."""
        signature, layout = self._last
        if signature is None or sum(map(len, items)) != len(items) * (len(signature) + reserved):
            return False
        try:
            spaces = [_values_alike([item[name] for item in items], keys) for name, keys in signature if keys]
            together = spaces[0] if len(spaces) == 1 else chain.from_iterable(zip(*spaces, strict=True))
            count = len(items) * sum(len(keys) for _, keys in signature)
            self._flat.frombytes(pack(f"{count}d", *chain.from_iterable(together)))
        except (KeyError, TypeError, ValueError, error):
            return False
        self._used.extend([layout] * len(items))
        return True

    def mark(self) -> tuple[int, int, int, int]:
        """Where it stands, to come `back` to."""
        return len(self._used), len(self._flat), len(self.columns), len(self.layouts)

    def back(self, mark: tuple[int, int, int, int]) -> None:
        """As it was at the mark, columns too."""
        rows, numbers, columns, layouts = mark
        del self._used[rows:]
        del self._flat[numbers:]
        if len(self.columns) > columns or len(self.layouts) > layouts:
            del self.layouts[layouts:]
            self.columns = {name: place for name, place in self.columns.items() if place < columns}
            self._known = {key: layout for key, layout in self._known.items() if layout < layouts}
            if self._last[1] >= layouts:
                self._last = (None, 0)

    def reset(self) -> None:
        """No rows; columns keep their places."""
        del self._used[:]
        del self._flat[:]
        if len(self.layouts) > LAYOUTS:
            self.layouts, self._known, self._last = [], {}, (None, 0)

    def rows(self) -> np.ndarray:
        """[rows, columns] float64; a feature that an object does not have is 0, one that it has twice is added up."""
        count, width = len(self._used), len(self.columns)
        flat = np.array(self._flat, np.float64)
        if not width or not count:
            return np.zeros((count, width))
        if len(set(self._used)) == 1 and np.array_equal(self.layouts[self._used[0]], np.arange(width)):
            return flat.reshape(count, width)
        used = [self.layouts[layout] for layout in self._used]
        row = np.repeat(np.arange(count), [len(columns) for columns in used])
        return np.bincount(row * width + np.concatenate(used), flat, minlength=count * width).reshape(count, width)

    def _with_words(self, item: dict[str, Any]) -> None:
        numbers: list[float] = []
        form = None, _form(item, numbers)
        layout = self._known.get(form)
        if layout is None:
            self._slowly(item)
            self._known[form] = self._used[-1]
            return
        self._flat.extend(numbers)
        self._used.append(layout)

    def _slowly(self, item: dict[str, Any]) -> None:
        names: list[str] = []
        values: list[float] = []
        _flatten(item, "", names, values)
        for name in names:
            if name not in self.columns:
                if len(self.columns) >= MOST:
                    raise InputError(f"feature {name!r} is one of more than {MOST}; drop identifiers, or hash them")
                self.columns[name] = len(self.columns)
        columns = tuple(self.columns[name] for name in names)
        layout = self._known.get(columns)
        if layout is None:
            layout = self._known[columns] = len(self.layouts)
            self.layouts.append(np.asarray(columns, np.int64))
        if _is_quick(item):
            signature = _signature(item)
            self._known[signature] = layout
            if all(keys is not None for _, keys in signature):
                self._last = signature, layout
        self._flat.extend(values)
        self._used.append(layout)


def _values_alike(objects: list[Any], keys: tuple[str, ...] | range) -> Iterable[Iterable[Any]]:
    """The values of each object, which must have these keys and no other, in their order; a list has a range."""
    if set(map(len, objects)) != {len(keys)}:
        raise ValueError
    if type(keys) is range:
        return objects
    values = map(itemgetter(*keys), objects)
    return values if len(keys) > 1 else zip(values, strict=True)


def _signature(item: dict[str, Any]) -> tuple[Any, ...]:
    """The keys of an object that is quick to read: numbers, and namespaces and lists of numbers."""
    return tuple((key, _keys(value)) for key, value in item.items() if key[0:1] != "_")


def _keys(value: Any) -> tuple[str, ...] | range | None:
    if type(value) is dict:
        return tuple(value)
    return range(len(value)) if type(value) is list else None


def _is_quick(item: dict[str, Any]) -> bool:
    """Whether there is nothing in an object but numbers, and namespaces and lists of numbers."""
    inside = {key: value for key, value in item.items() if key[0:1] != "_"}
    spaces = [value if type(value) is dict else {"": value} for value in inside.values() if type(value) is not list]
    lists = chain.from_iterable(value for value in inside.values() if type(value) is list)
    return all(type(value) in (int, float) for value in lists) and all(
        type(value) in (int, float) and key[0:1] != "_" for space in spaces for key, value in space.items()
    )


def _form(value: Any, numbers: list[float]) -> Any:
    """All of a value but its numbers, which are put aside in the order of `_flatten`; a word counts as 1.

    Values of one form have the same names. A list begins with 0, so that it is not taken for an object.
    """
    if value.__class__ is list:
        return (0, *[_form(inner, numbers) for inner in value])
    if value.__class__ is not dict:
        return _leaf(value, numbers)
    parts: list[Any] = []
    for key, inner in value.items():
        if key[0:1] != "_" or not _ignored(key):
            nests = inner.__class__ is dict or inner.__class__ is list
            parts += key, _form(inner, numbers) if nests else _leaf(inner, numbers)
    return tuple(parts)


def _leaf(value: Any, numbers: list[float]) -> Any:
    if value.__class__ is str:
        numbers.append(1.0)
        return value
    if value is None or value is False:
        return False
    numbers.append(value)
    return None


def _flatten(item: dict[str, Any], path: str, names: list[str], values: list[float]) -> None:
    for key, value in item.items():
        if not _ignored(key):
            _put(f"{path}{key}", value, names, values)


def _put(name: str, value: Any, names: list[str], values: list[float]) -> None:
    if type(value) in (int, float) or value is True:
        names.append(name)
        values.append(float(value))
    elif type(value) is str:
        names.append(f"{name}={value}")
        values.append(1.0)
    elif type(value) is dict:
        _flatten(value, f"{name}/", names, values)
    elif type(value) is list:
        for index, inner in enumerate(value):
            if type(inner) is dict:
                _flatten(inner, f"{name}/", names, values)
            else:
                _put(f"{name}[{index}]", inner, names, values)
    elif value is not None and value is not False:
        raise InputError(f"feature {name} is a {type(value).__name__}")


def _ignored(key: str) -> bool:
    """Whether VW reserves a key: such carry no feature, but for one."""
    if key[0:1] != "_":
        return False
    if key == "_text":
        raise InputError("_text is free text, which has no columns; turn it into numbers or words first")
    if key == "_slots":
        raise InputError("c has _slots: several decisions in one event are not supported")
    return True
