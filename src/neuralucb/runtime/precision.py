"""Float64 where it is needed, without changing the user's JAX configuration."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

import jax
import numpy as np

from neuralucb.runtime.errors import InputError

__all__ = ["Number", "exact", "require"]

P = ParamSpec("P")

R = TypeVar("R")

Number: TypeAlias = float | jax.Array
"""A hyperparameter: a number, or one that is traced."""


def exact(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, with float64 available while it runs.

    Only where it runs at once: JAX settles on types again when it batches and lowers a traced function, so inside
    a user's `jit` or `vmap` the caller must have made float64 available; without it a float64 belief is refused.
    """

    @wraps(function)
    def with_float64(*args: P.args, **kwargs: P.kwargs) -> R:
        if jax.config.read("jax_enable_x64"):
            return function(*args, **kwargs)
        leaves = jax.tree.leaves((args, kwargs))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            for leaf in leaves:
                require(getattr(leaf, "dtype", None))
            return function(*args, **kwargs)
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return with_float64


def require(dtype: Any) -> None:
    """Raise InputError, with the cure, where JAX would silently turn float64 into float32."""
    if _is_float64(dtype) and not jax.config.read("jax_enable_x64"):
        raise InputError(
            "float64 was requested inside a compiled function while JAX's 64-bit types are off, and JAX would truncate "
            "it; compile and call it inside `with jax.enable_x64(True):`, or take float32 for design_precision and "
            "network_precision."
        )


def _is_float64(dtype: Any) -> bool:
    try:
        return np.dtype(dtype) == np.float64 and dtype is not None
    except TypeError:  # a key's
        return False
