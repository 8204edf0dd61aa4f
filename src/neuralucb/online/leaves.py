"""The arrays of a belief by number: what a file holds of it, and what a training changed."""

from typing import Any

import jax
import numpy as np

from neuralucb.policy import Belief

__all__ = ["changed_leaves", "leaves_of", "with_leaves"]


def leaves_of(belief: Belief, name: str) -> dict[str, np.ndarray]:
    """All of them, under names such as `belief.0`."""
    return {f"{name}.{index}": _plain(leaf) for index, leaf in enumerate(jax.tree.leaves(belief))}


def changed_leaves(before: Belief, after: Belief) -> dict[str, np.ndarray]:
    """Those that differ, by number."""
    leaves = zip(map(_plain, jax.tree.leaves(before)), map(_plain, jax.tree.leaves(after)), strict=True)
    return {str(index): new for index, (old, new) in enumerate(leaves) if not np.array_equal(old, new)}


def with_leaves(belief: Belief, arrays: dict[str, np.ndarray], *, all_of_them: bool = False) -> Belief:
    """The belief with some of its arrays, by number, replaced; ValueError where they do not fit."""
    leaves, structure = jax.tree.flatten(belief)
    if all_of_them and set(arrays) != {str(index) for index in range(len(leaves))}:
        raise ValueError(f"the belief has {len(arrays)} arrays, the policy's has {len(leaves)}")
    with jax.enable_x64(True):
        for index, array in arrays.items():
            old = leaves[int(index)]
            here = _plain(old)
            if here.shape != array.shape or here.dtype != array.dtype:
                raise ValueError(
                    f"array {index} of the belief is {array.dtype} {array.shape}, the policy's is {here.dtype} "
                    f"{here.shape}"
                )
            new = jax.numpy.array(array)
            leaves[int(index)] = jax.random.wrap_key_data(new) if _is_key(old) else new
    return jax.tree.unflatten(structure, leaves)


def _plain(leaf: Any) -> np.ndarray:
    """A leaf as numbers; a key as its bits."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _is_key(leaf: Any) -> bool:
    return bool(jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key))
