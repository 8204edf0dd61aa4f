"""Events as bytes, and beliefs as named arrays: the encoding that journal and snapshots share."""

import json
import math
import struct
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from neuralucb.policy import Belief
from neuralucb.runtime.errors import InputError, StorageError

__all__ = ["TYPES", "changed_leaves", "check_type", "leaves_of", "pack", "unpack", "with_leaves"]

_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode

TYPES = {
    "|b1": "BOOL", "|i1": "I8", "|u1": "U8", "<i2": "I16", "<u2": "U16", "<i4": "I32", "<u4": "U32", "<i8": "I64",
    "<u8": "U64", "<f2": "F16", "<f4": "F32", "<f8": "F64",
}  # fmt: skip
"""What is written, in NumPy's words and in those of safetensors, and so what is read: a file that names another type,
such as Python objects, is not ours."""

MALFORMED = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, struct.error)


def pack(fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Plain values and arrays as bytes: the length of a JSON text, the text, then the arrays one after the other."""
    shapes = _shapes(tuple((name, array.dtype, array.shape) for name, array in arrays.items()))
    text = f"[{_encode(fields)},{shapes}]".encode()
    return b"".join([struct.pack("<I", len(text)), text, *(array.tobytes() for array in arrays.values())])


def unpack(payload: bytes, source: object = "a record") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `pack` was given. Anything else is refused with StorageError, which names the source."""
    try:
        (length,) = struct.unpack_from("<I", payload)
        start = 4 + length
        text = payload[4:start].decode()
        fields, end = _decode(text, 1)
        arrays = {
            name: np.ndarray(shape, kind, payload, start + offset)
            for name, kind, shape, offset in _layout(text[end + 1 : -1])
        }
    except MALFORMED as problem:
        raise StorageError(
            f"{source} holds something that this version does not write: {problem}; restore it from a backup."
        ) from problem
    return fields, arrays


def check_type(name: str, kind: str) -> np.dtype:
    """The type of an array as it is written, such as `<f4`; others raise ValueError."""
    if kind not in TYPES:
        raise InputError(f"array {name} must have one of the types {', '.join(sorted(TYPES))}, got {kind!r:.40}")
    return np.dtype(kind)


def leaves_of(belief: Belief, name: str) -> dict[str, np.ndarray]:
    """The arrays of a belief, under names such as `belief.0`."""
    return {f"{name}.{index}": _plain(leaf) for index, leaf in enumerate(jax.tree.leaves(belief))}


def changed_leaves(before: Belief, after: Belief) -> dict[str, np.ndarray]:
    """The arrays in which two beliefs differ, by number."""
    leaves = zip(map(_plain, jax.tree.leaves(before)), map(_plain, jax.tree.leaves(after)), strict=True)
    return {str(index): new for index, (old, new) in enumerate(leaves) if not np.array_equal(old, new)}


def with_leaves(belief: Belief, arrays: dict[str, np.ndarray], *, strict: bool = False) -> Belief:
    """The belief with some of its arrays replaced, by number.

    strict  whether all of them must be given
    """
    leaves, structure = jax.tree.flatten(belief)
    if strict and set(arrays) != {str(index) for index in range(len(leaves))}:
        raise InputError(
            f"the belief has {len(arrays)} arrays, the policy's has {len(leaves)}; another policy or version of "
            "neuralucb wrote it: open it with that one, or begin in a new folder"
        )
    with jax.enable_x64(True):
        for index, array in arrays.items():
            old = leaves[int(index)]
            expected = _plain(old)
            if expected.shape != array.shape or expected.dtype != array.dtype:
                raise InputError(
                    f"array {index} of the belief is {array.dtype} {array.shape}, the policy's is {expected.dtype} "
                    f"{expected.shape}"
                )
            new = jax.device_put(np.array(array))  # compiles nothing, unlike jax.numpy.array
            leaves[int(index)] = jax.random.wrap_key_data(new, impl=jax.random.key_impl(old)) if _is_key(old) else new
    return jax.tree.unflatten(structure, leaves)


@lru_cache(maxsize=64)
def _shapes(columns: tuple[tuple[str, np.dtype, tuple[int, ...]], ...]) -> str:
    """Names, types and shapes in JSON; the same for most decisions."""
    return _encode({name: (check_type(name, kind.str).str, shape) for name, kind, shape in columns})


@lru_cache(maxsize=64)
def _layout(shapes: str) -> list[tuple[str, np.dtype, tuple[int, ...], int]]:
    """Name, type, shape and offset of every array, from what `_shapes` wrote."""
    layout, offset = [], 0
    for name, (kind, shape) in json.loads(shapes).items():
        if min(shape, default=0) < 0:
            raise ValueError(f"array {name} has shape {shape}")
        layout.append((name, check_type(name, kind), tuple(shape), offset))
        offset += math.prod(shape) * np.dtype(kind).itemsize
    return layout


def _plain(leaf: Any) -> np.ndarray:
    """A leaf as an array of numbers, also if it is a random key."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _is_key(leaf: Any) -> bool:
    return bool(jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key))
