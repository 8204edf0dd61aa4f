"""What a context must look like: read from what a caller gives, or refused with what was expected and what came."""

from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.policy import Policy, Slot
from neuralucb.runtime.errors import InputError

__all__ = ["Shape", "read_available", "shape_of_policy"]


class Shape(NamedTuple):
    """Of one arm's context: a pytree, its leaves' shapes and types."""

    structure: Any
    leaves: tuple[tuple[tuple[int, ...], str], ...]

    @property
    def is_vector(self) -> bool:
        """Whether a context is one array."""
        return self.structure == jax.tree.structure(0)

    @property
    def is_slot(self) -> bool:
        """Whether arms share what is known: contexts are `Slot(x, arm)`."""
        return self.structure == jax.tree.structure(Slot._make((0, 0)))

    def read(self, given: Any, axes: int, *, what: str = "contexts") -> tuple[Any, tuple[int, ...]]:
        """Arrays of the right types with `axes` leading axes, and the lengths of those."""
        if self.is_vector and type(given) in (list, tuple):
            given = _stacked(given, what)
        leaves, structure = jax.tree.flatten(given)
        if structure != self.structure:
            raise InputError(f"{what} must be {self.in_words(axes)}, got {_kind(given)}.")
        arrays = [_numbers(leaf, kind, what) for leaf, (_, kind) in zip(leaves, self.leaves, strict=True)]
        leading = {array.shape[:axes] for array in arrays}
        fits = all(array.shape[axes:] == shape for array, (shape, _) in zip(arrays, self.leaves, strict=True))
        if len(leading) != 1 or not fits or len(next(iter(leading))) != axes:
            got = ", ".join(str(array.shape) for array in arrays)
            raise InputError(f"{what} must be {self.in_words(axes)}, got shape {got}.")
        (lengths,) = leading
        if 0 in lengths:
            raise InputError(f"{what} must be {self.in_words(axes)}, got none: shape {arrays[0].shape}.")
        for array in arrays:
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise InputError(
                    f"{what} must be finite, in float32, got NaN or infinity; clean or drop such rows first."
                )
        return jax.tree.unflatten(self.structure, arrays), lengths

    def zeros(self, *lengths: int) -> Any:
        """Contexts of nothing, with these leading axes."""
        return jax.tree.unflatten(self.structure, [np.zeros((*lengths, *shape), kind) for shape, kind in self.leaves])

    def in_words(self, axes: int) -> str:
        """Such as `an array (arms, 20)`."""
        names = ["decisions", "arms"][2 - axes :] if axes else []
        shapes = [f"({', '.join([*names, *map(str, shape)])}{',' * (len(names) + len(shape) == 1)})"
                  for shape, _ in self.leaves]  # fmt: skip
        if self.is_vector:
            return f"an array {shapes[0]}"
        kind = "a Slot" if self.is_slot else f"a tree like {self.structure}"
        return f"{kind} of arrays {', '.join(shapes)}"


def shape_of_policy(policy: Policy, example: Any) -> Shape | None:
    """The shape that a policy takes: as it was built, or that of an example; None where nobody said."""
    origin = policy.origin
    if example is None:
        if origin is None:
            return None
        vector = np.zeros(origin.dim, np.float32)
        example = vector if origin.shared_by is None else Slot._make((vector, np.int32(0)))
    example = jax.tree.map(_as_array, example)
    leaves: tuple[tuple[tuple[int, ...], str], ...] = tuple(
        (leaf.shape, leaf.dtype.str) for leaf in jax.tree.leaves(example)
    )
    return Shape(jax.tree.structure(example), leaves)


def read_available(available: Any, lengths: tuple[int, ...]) -> np.ndarray:
    """Booleans, one an arm; at least one arm must be left."""
    if available is None:
        return np.ones(lengths, bool)
    read = np.asarray(available)
    if read.shape != lengths or read.dtype != bool:
        raise InputError(
            f"available must be booleans of shape {lengths}, one an arm, got {read.dtype} of shape {read.shape}."
        )
    if not read.any(-1).all():
        raise InputError("available must allow at least one arm, got none.")
    return read


def _as_array(leaf: Any) -> np.ndarray:
    array = np.asarray(leaf)
    return array.astype(np.int32 if array.dtype.kind in "iu" else np.float32)


def _stacked(rows: Any, what: str) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):
            return np.asarray(rows, np.float32)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be rows of equally many numbers, got {_short(rows)}.") from None


def _numbers(leaf: Any, kind: str, what: str) -> np.ndarray:
    """Of this kind. What is too large for float32 becomes infinite, to be refused; whole numbers stay what they are."""
    try:
        array = np.asarray(leaf)
        if array.dtype.kind not in "fiub":
            raise TypeError
        with np.errstate(over="ignore", invalid="ignore"):
            read = np.asarray(array, np.dtype(kind), order="C")
        if read.dtype.kind in "iu" and (read != array).any():
            raise TypeError
        return read
    except (TypeError, ValueError):
        whole = "whole numbers" if np.dtype(kind).kind in "iu" else "numbers"
        raise InputError(f"{what} must be {whole}, got {_short(leaf)}.") from None


def _kind(given: Any) -> str:
    shape = getattr(given, "shape", None)
    return f"a {type(given).__name__}" + (f" of shape {shape}" if shape is not None else "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
