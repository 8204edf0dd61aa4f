"""Policies that can be served: they decide from the features of a request, and from nothing else."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from neuralucb.algorithms import build
from neuralucb.online.context_shape import shape_of_policy
from neuralucb.policy import Policy
from neuralucb.runtime.errors import InputError

__all__ = ["servable"]

RESERVED = ("dim", "rounds", "shared_by")
"""What a service sets itself."""


def servable(algorithm: str, options: Mapping[str, Any], slots: int) -> Policy:
    """The policy of an algorithm for contexts of so many slots, before anything of it is written.

    Raises InputError for an algorithm or options that there are not, and for one that needs more than features.
    """
    if taken := [name for name in RESERVED if name in options]:
        raise InputError(f"options must not set {taken[0]}: contexts have {slots} slots, and arms come with requests.")
    policy = build(algorithm, dim=slots, **options)
    contexts = shape_of_policy(policy, None).zeros(2)
    with jax.enable_x64(True):
        key = jax.random.key(0)
        try:
            jax.eval_shape(lambda: policy.select(key, policy.init(key), contexts, np.ones(2, bool)))
        except InputError as problem:
            raise InputError(f"algorithm {algorithm!r} cannot decide from features alone: {problem}") from None
    return policy
