"""The shape of one arm's context: what a policy expects, and contexts read from a caller's arrays and lists."""

from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.policy import Noted, Policy, Slot
from neuralucb.runtime.errors import InputError

__all__ = ["ContextShape", "array_shape", "numbers_in", "read_floats", "shape_of_policy"]

REAL = (Real, Decimal, np.bool_)
"""What counts as a number among objects."""


class ContextShape(NamedTuple):
    """One arm's context: its pytree structure, and the shape and type of every leaf."""

    structure: Any
    leaves: tuple[tuple[tuple[int, ...], str], ...]

    @property
    def is_vector(self) -> bool:
        """Whether a context is a single array."""
        return self.structure == jax.tree.structure(0)

    @property
    def is_slot(self) -> bool:
        """Whether arms share one context: contexts are `Slot(x, arm)`."""
        return self.structure == jax.tree.structure(Slot._make((0, 0)))

    def read(self, contexts: Any, axes: int) -> tuple[Any, tuple[int, ...]]:
        """Contexts as arrays of the right types, and the lengths of their `axes` leading axes."""
        if self.is_vector and type(contexts) in (list, tuple):
            contexts = read_floats(contexts, "contexts must be rows of equally many numbers")
        arrays = [
            _read_leaf(leaf, kind) for leaf, (_, kind) in zip(self._flatten(contexts, axes), self.leaves, strict=True)
        ]
        leading = {array.shape[:axes] for array in arrays}
        fits = all(array.shape[axes:] == shape for array, (shape, _) in zip(arrays, self.leaves, strict=True))
        if len(leading) != 1 or not fits or len(next(iter(leading))) != axes:
            got = ", ".join(str(array.shape) for array in arrays)
            raise InputError(f"contexts must be {self.describe(axes)}, got shape {got}.")
        (lengths,) = leading
        if 0 in lengths:
            raise InputError(f"contexts must be {self.describe(axes)}, got none: shape {arrays[0].shape}.")
        for array in arrays:
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise InputError(
                    "contexts must be finite, in float32, got NaN or infinity; clean or drop such rows first."
                )
        return self.unflatten(arrays), lengths

    def noted(self, size: int) -> "ContextShape":
        """Such contexts with a note of so many numbers; without one the same."""
        if not size:
            return self
        structure = jax.tree.structure(Noted._make((self.unflatten([0] * len(self.leaves)), 0)))
        return ContextShape(structure, (*self.leaves, ((size,), np.dtype(np.float32).str)))

    def unflatten(self, leaves: Any) -> Any:
        """Contexts from their leaves."""
        return jax.tree.unflatten(self.structure, leaves)

    def zeros(self, *lengths: int) -> Any:
        """Contexts of zeros, with these leading axes."""
        return self.unflatten([np.zeros((*lengths, *shape), kind) for shape, kind in self.leaves])

    def describe(self, axes: int) -> str:
        """The shape in words, such as `an array (arms, 20)`."""
        names = ["decisions", "arms"][2 - axes :] if axes else []
        shapes = [f"({', '.join([*names, *map(str, shape)])}{',' * (len(names) + len(shape) == 1)})"
                  for shape, _ in self.leaves]  # fmt: skip
        if self.is_vector:
            return f"an array {shapes[0]}"
        kind = "a Slot" if self.is_slot else f"a tree like {self.structure}"
        return f"{kind} of arrays {', '.join(shapes)}"

    def _flatten(self, contexts: Any, axes: int) -> list[Any]:
        try:
            leaves, structure = jax.tree.flatten(contexts)
            if structure == self.structure:
                return list(leaves)
        except (TypeError, ValueError):  # a dictionary whose keys have no order
            pass
        raise InputError(f"contexts must be {self.describe(axes)}, got {_describe_type(contexts)}.")


def shape_of_policy(policy: Policy, example: Any) -> ContextShape:
    """The shape of the contexts that a policy takes: as `build` recorded it, or that of an example."""
    origin = policy.origin
    if example is None:
        if origin is None:
            raise InputError("example must be a context of one arm, got None: this policy was not made by build.")
        vector = np.zeros(origin.dim, np.float32)
        example = vector if origin.shared_by is None else Slot._make((vector, np.int32(0)))
    try:
        example = jax.tree.map(_example_leaf, example)
    except (TypeError, ValueError):
        raise InputError(f"example must be a context of one arm, made of numbers, got {example!r:.80}.") from None
    leaves = tuple((leaf.shape, leaf.dtype.str) for leaf in jax.tree.leaves(example))
    return ContextShape(jax.tree.structure(example), leaves)


def read_floats(values: Any, expected: str) -> np.ndarray:
    """Numbers as float32; those too large become infinite, for the caller to refuse.

    expected  the beginning of the message for anything else: strings, dates, rows of different lengths
    """
    try:
        with np.errstate(over="ignore"):
            return np.asarray(numbers_in(values), np.float32)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{expected}, got {_shortened(values)}; encode strings, dates and categories first.") from None


def numbers_in(values: Any) -> np.ndarray:
    """The values as an array of real numbers, True and False among them. Raises TypeError or ValueError for others.

    NumPy alone would read "1" and b"1" as numbers, where an array of objects holds them, and 1 + 2j as 1; of a masked
    array it would read what stands under the mask. Masked is missing, so it becomes NaN, for the caller to refuse.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        values = np.ma.filled(values.astype(object), np.nan)
    array = np.asarray(values)
    if array.dtype.kind == "O":
        if not all(isinstance(each, REAL) and not isinstance(each, np.timedelta64) for each in array.flat):
            raise TypeError
        return array
    if array.dtype.kind not in "fiubV" or array.dtype.names is not None:  # V: bfloat16, or fields with names
        raise TypeError
    return array


def array_shape(values: Any) -> tuple[int, ...] | None:
    """The shape of an array or of nested lists; None for rows of different lengths."""
    try:
        return np.shape(values)
    except (TypeError, ValueError):
        return None


def _example_leaf(leaf: Any) -> np.ndarray:
    array = np.asarray(leaf)
    if array.dtype.kind not in "fiub":
        raise TypeError
    return array.astype(np.int32 if array.dtype.kind in "iu" else np.float32)


def _read_leaf(leaf: Any, kind: str) -> np.ndarray:
    """A leaf of this type. Numbers too large for float32 become infinite; integers must not change."""
    try:
        array = numbers_in(leaf)
        with np.errstate(over="ignore", invalid="ignore"):
            read = np.asarray(array, np.dtype(kind), order="C")
        if read.dtype.kind in "iu" and (read != array).any():
            raise TypeError
        return read
    except (TypeError, ValueError, OverflowError):
        numbers = "whole numbers" if np.dtype(kind).kind in "iu" else "numbers"
        raise InputError(
            f"contexts must be {numbers}, got {_shortened(leaf)}; encode strings, dates and categories first."
        ) from None


def _describe_type(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"a {type(value).__name__}" + (f" of shape {shape}" if shape is not None else "")


def _shortened(value: Any) -> str:
    text = " ".join(repr(value).split())  # on one line
    return text if len(text) <= 80 else f"{text[:77]}..."
