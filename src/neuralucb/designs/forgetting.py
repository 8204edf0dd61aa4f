"""The exact Z of a past that fades: what was long ago weighs less, and the ridge is renewed."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs.design import Design
from neuralucb.designs.full import Full, full
from neuralucb.gradients import dense
from neuralucb.runtime.precision import Number
from neuralucb.runtime.records import brief

__all__ = ["Forgetting", "forgetting"]


@brief
class Forgetting(NamedTuple):
    """Z as its inverse, and how many gradients were added."""

    z: Full
    added: jax.Array


def forgetting(size: int, *, ridge: Number, memory: int, dtype: Any = "float64") -> Design:
    """The exact Z of `size` parameters that forgets: the last gradients count, about `memory` of them.

        Z ← φ Z + ggᵀ + λ(1 - φ^p) e_i e_iᵀ,   φ = 1 - 1/memory,   i = t mod p

    Without its last term λI would fade as the past does, and Z⁻¹ would grow without end wherever no gradient points.
    All of λ(1 - φ)I at once would cost O(p³); one entry per update is renewed instead, so that each stays between φ^p λ
    and λ. An update is O(p²), and rounding fades with the past.
    """
    exact = full(size, ridge=ridge, dtype=dtype)
    keep = 1 - 1 / memory

    def add(belief: Forgetting, gradient: Any) -> Forgetting:
        fading = jnp.asarray(keep, dtype)
        z = belief.z
        faded = Full(z.inverse / fading, z.log_det + size * jnp.log(fading), fading * z.image)
        renewal = jnp.sqrt(jnp.asarray(ridge, dtype) * (1 - fading**size))
        place = jnp.arange(size, dtype=jnp.int32) == belief.added % size
        z = exact.add(exact.add(faded, dense(gradient)), jnp.where(place, renewal, 0))
        # what rounding makes of Z⁻¹ fades only where it is symmetric; the rest would grow by 1/φ with every update
        return Forgetting(z._replace(inverse=(z.inverse + z.inverse.T) / 2), belief.added + 1)

    return Design(
        lambda: Forgetting(exact.init(), jnp.int32(0)),
        lambda belief, gradient: exact.width(belief.z, gradient),
        add,
        lambda belief: exact.log_det(belief.z),
        lambda belief, b: exact.solve(belief.z, b),
    )
