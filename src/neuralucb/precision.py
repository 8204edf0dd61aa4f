"""Float64 for those who need it, without touching the user's JAX configuration."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import jax

__all__ = ["exact"]

P = ParamSpec("P")
R = TypeVar("R")


def exact(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, with float64 available while it runs.

    JAX decides on 64-bit types when a loop is batched, not when its body is written. A float64 belief traced by someone
    else's `jit`, `vmap` or `scan` would therefore be truncated in silence; that is refused here.
    """

    @wraps(function)
    def with_float64(*args: P.args, **kwargs: P.kwargs) -> R:
        if jax.config.jax_enable_x64:
            return function(*args, **kwargs)
        with jax.enable_x64(True):
            result = function(*args, **kwargs)
        if _is_traced((args, kwargs)) and _has_float64((args, kwargs, result)):
            raise ValueError(
                "a float64 belief is being traced while 64-bit types are off, and JAX would truncate it; put the "
                "compiled function and its call inside `with jax.enable_x64(True):`, or build the policy with "
                "design_precision='float32'."
            )
        return result

    return with_float64


def _is_traced(tree: object) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree))


def _has_float64(tree: object) -> bool:
    return any(getattr(leaf, "dtype", None) == "float64" for leaf in jax.tree.leaves(tree))
