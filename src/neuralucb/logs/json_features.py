"""Named features of JSON objects as columns: numbers as they are, words as one-hot, one column per name."""

from array import array
from collections.abc import Iterable
from itertools import chain
from operator import itemgetter
from struct import error, pack
from typing import Any, TypeAlias, TypeVar

import numpy as np

from neuralucb.runtime.errors import InputError

__all__ = ["Features"]

MOST = 4096
"""Columns, at most: more are identifiers, not features, and would fill the memory."""

LAYOUTS = 4096
"""Layouts that are remembered from chunk to chunk: words make a new one for every combination."""

_Keys: TypeAlias = tuple[tuple[str, tuple[str, ...] | range | None], ...]
"""Each namespace with the keys in it; a list has a range, and a number without a namespace has None."""

_Key = TypeVar("_Key")


class Features:
    """Rows of features, one per JSON object; a number in a namespace has the name `User/age`.

    A word becomes a column, `User/country=de`, that is 1 where the word occurs; a list becomes `User/history[0]`, …;
    true is 1, false and null are 0. Objects with the same keys share a layout, which is looked up once.
    """

    def __init__(self) -> None:
        self.columns: dict[str, int] = {}
        self.layouts: list[np.ndarray] = []
        """of each layout, the columns of its numbers in their order"""
        self._by_keys: dict[_Keys, int] = {}
        """layouts of objects that hold only numbers, by their namespaces and keys"""
        self._by_form: dict[Any, int] = {}
        """layouts of all other objects, by everything in them but the numbers"""
        self._by_columns: dict[tuple[int, ...], int] = {}
        """layouts by their columns, so that none is kept twice"""
        self._last: tuple[_Keys | None, int] = (None, 0)
        """keys and layout of the last new object in which every number has a namespace"""
        self._values = array("d")
        self._used: list[int] = []
        """the layout of each row"""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in order of appearance."""
        return tuple(self.columns)

    def add(self, item: dict[str, Any]) -> None:
        """Add one row."""
        begin = len(self._values)
        keys: list[tuple[str, tuple[str, ...] | range | None]] = []
        try:
            for key, value in item.items():
                if _ignored(key):
                    continue
                if value.__class__ is dict:
                    self._values.extend(value.values())
                    keys.append((key, tuple(value)))
                elif value.__class__ is list:
                    self._values.extend(value)
                    keys.append((key, range(len(value))))
                else:
                    self._values.append(value)
                    keys.append((key, None))
            self._used.append(self._by_keys[tuple(keys)])
        except (KeyError, TypeError):  # a new kind of object, or one that has more than numbers
            del self._values[begin:]
            self._add_by_form(item)

    def add_alike(self, items: list[dict[str, Any]], *, reserved: int) -> bool:
        """Add rows at once, if all have the keys of the last one and `reserved` others; returns whether it did."""
        namespaces, layout = self._last
        if namespaces is None or sum(map(len, items)) != len(items) * (len(namespaces) + reserved):
            return False
        try:
            spaces = [_values_alike([item[name] for item in items], keys) for name, keys in namespaces if keys]
            together = spaces[0] if len(spaces) == 1 else chain.from_iterable(zip(*spaces, strict=True))
            count = len(items) * sum(len(keys) for _, keys in namespaces if keys is not None)
            self._values.frombytes(pack(f"{count}d", *chain.from_iterable(together)))
        except (KeyError, TypeError, ValueError, error):
            return False
        self._used.extend([layout] * len(items))
        return True

    def mark(self) -> tuple[int, int, int, int]:
        """The current state, for `rollback`."""
        return len(self._used), len(self._values), len(self.columns), len(self.layouts)

    def rollback(self, mark: tuple[int, int, int, int]) -> None:
        """Return to the state at the mark, columns included."""
        rows, values, columns, layouts = mark
        del self._used[rows:]
        del self._values[values:]
        if len(self.columns) > columns or len(self.layouts) > layouts:
            del self.layouts[layouts:]
            self.columns = {name: column for name, column in self.columns.items() if column < columns}
            self._by_keys = _below(self._by_keys, layouts)
            self._by_form = _below(self._by_form, layouts)
            self._by_columns = _below(self._by_columns, layouts)
            if self._last[1] >= layouts:
                self._last = (None, 0)

    def reset(self) -> None:
        """Drop all rows; columns keep their places."""
        del self._used[:]
        del self._values[:]
        if len(self.layouts) > LAYOUTS:
            self.layouts = []
            self.forget_layouts()

    def forget_layouts(self) -> None:
        """Work the layout of the next object of each kind out again; rows and columns stay."""
        self._by_keys, self._by_form, self._by_columns, self._last = {}, {}, {}, (None, 0)

    def rows(self) -> np.ndarray:
        """[rows, columns] float64; a feature that an object does not have is 0, one that it has twice is added up."""
        count, width = len(self._used), len(self.columns)
        flat = np.array(self._values, np.float64)
        if not width or not count:
            return np.zeros((count, width))
        if len(set(self._used)) == 1 and np.array_equal(self.layouts[self._used[0]], np.arange(width)):
            return flat.reshape(count, width)
        used = [self.layouts[layout] for layout in self._used]
        row = np.repeat(np.arange(count), [len(columns) for columns in used])
        return np.bincount(row * width + np.concatenate(used), flat, minlength=count * width).reshape(count, width)

    def _add_by_form(self, item: dict[str, Any]) -> None:
        numbers: list[float] = []
        form = _form(item, numbers)
        layout = self._by_form.get(form)
        if layout is None:
            self._by_form[form] = self._add_new(item)
            return
        self._values.extend(numbers)
        self._used.append(layout)

    def _add_new(self, item: dict[str, Any]) -> int:
        """One row of a kind not seen before; returns its layout."""
        names: list[str] = []
        values: list[float] = []
        _flatten(item, "", names, values)
        layout = self._layout(names)
        if _has_only_numbers(item):
            keys = _keys(item)
            self._by_keys[keys] = layout
            if all(inner is not None for _, inner in keys):
                self._last = keys, layout
        self._values.extend(values)
        self._used.append(layout)
        return layout

    def _layout(self, names: list[str]) -> int:
        """The layout with these names, which get columns if they have none."""
        for name in names:
            if name not in self.columns:
                if len(self.columns) >= MOST:
                    raise InputError(f"feature {name!r} is one of more than {MOST}; drop identifiers, or hash them")
                self.columns[name] = len(self.columns)
        columns = tuple(self.columns[name] for name in names)
        layout = self._by_columns.setdefault(columns, len(self.layouts))
        if layout == len(self.layouts):
            self.layouts.append(np.asarray(columns, np.int64))
        return layout


def _below(known: dict[_Key, int], layouts: int) -> dict[_Key, int]:
    return {key: layout for key, layout in known.items() if layout < layouts}


def _values_alike(objects: list[Any], keys: tuple[str, ...] | range) -> Iterable[Iterable[Any]]:
    """The values of each object, which must have these keys and no other, in their order; a list has a range."""
    if set(map(len, objects)) != {len(keys)}:
        raise ValueError
    if type(keys) is range:
        return objects
    values = map(itemgetter(*keys), objects)
    return values if len(keys) > 1 else zip(values, strict=True)


def _keys(item: dict[str, Any]) -> _Keys:
    """The keys of an object that has only numbers, as `Features.add` collects them."""
    return tuple((key, _inner_keys(value)) for key, value in item.items() if key[0:1] != "_")


def _inner_keys(value: Any) -> tuple[str, ...] | range | None:
    if type(value) is dict:
        return tuple(value)
    return range(len(value)) if type(value) is list else None


def _has_only_numbers(item: dict[str, Any]) -> bool:
    """Whether an object holds only numbers, and namespaces and lists of numbers."""
    inside = {key: value for key, value in item.items() if key[0:1] != "_"}
    spaces = [value if type(value) is dict else {"": value} for value in inside.values() if type(value) is not list]
    lists = chain.from_iterable(value for value in inside.values() if type(value) is list)
    return all(type(value) in (int, float) for value in lists) and all(
        type(value) in (int, float) and key[0:1] != "_" for space in spaces for key, value in space.items()
    )


def _form(value: Any, numbers: list[float]) -> Any:
    """A value without its numbers, which are collected in the order of `_flatten`; a word counts as 1.

    Values of one form have the same names. A list begins with 0, which tells it from an object.
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
    """Whether VW ignores a key; two that it does not ignore are refused."""
    if key[0:1] != "_":
        return False
    if key == "_text":
        raise InputError("_text is free text, which has no columns; turn it into numbers or words first")
    if key == "_slots":
        raise InputError("c has _slots: several decisions in one event are not supported")
    return True
