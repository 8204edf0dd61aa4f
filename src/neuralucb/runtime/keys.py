"""Keys of JAX's Threefry, the same numbers, in a form that XLA compiles several times faster for a CPU.

JAX writes the hash as a loop there, of which XLA makes about ten kernels each time that numbers are drawn. Here it is
written out, and becomes one. See J. K. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import define_prng_impl

__all__ = ["quick"]

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""Of the rounds between two injections of the key, in turns."""

INJECTIONS = 5

PARITY = 0x1BD11BDA
"""The third word of the key is the exclusive or of the other two and this."""

THREEFRY = "threefry2x32"


def quick(key: jax.Array) -> jax.Array:
    """The same key, for programs for a CPU; all that is drawn from it is as it was, to the last bit."""
    if jax.default_backend() != "cpu" or not jax.config.values["jax_threefry_partitionable"]:
        return key
    if str(jax.random.key_impl(key)) != THREEFRY:
        return key
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=_QUICK)


@jax.jit
def _hash(key: jax.Array, high: jax.Array, low: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Threefry-2x32 with 20 rounds, of every pair of counts."""
    words = key[0], key[1], key[0] ^ key[1] ^ np.uint32(PARITY)
    a, b = high + words[0], low + words[1]
    for injection in range(INJECTIONS):
        for bits in ROTATIONS[injection % 2]:
            a = a + b
            b = a ^ ((b << np.uint32(bits)) | (b >> np.uint32(32 - bits)))
        a = a + words[(injection + 1) % 3]
        b = b + words[(injection + 2) % 3] + np.uint32(injection + 1)
    return a, b


def _once(numbers: jax.Array, key: jax.Array) -> jax.Array:
    """The numbers, computed once, and not again wherever they are used.

    XLA computes what is cheap, as it takes a hash to be, again in every kernel that reads it, and so all hashes from
    which its key came; but never a division. This one is by 1, which only LLVM finds out, and leaves out.
    """
    one = ((key[0] >> np.uint32(16)) >> np.uint32(16)) | np.uint32(1)
    return lax.div(numbers, jnp.broadcast_to(one.astype(numbers.dtype), numbers.shape))


def _hashed_counts(key: jax.Array, shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    counts = lax.iota(np.uint32, math.prod(shape)).reshape(shape)
    return _hash(key, jnp.zeros(shape, np.uint32), counts)


def _seed(seed: jax.Array) -> jax.Array:
    return jax.random.key_data(jax.random.key(seed, impl=THREEFRY))


def _split(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return _once(jnp.stack(_hashed_counts(key, shape), axis=-1), key)


def _fold_in(key: jax.Array, data: Any) -> jax.Array:
    number = jnp.asarray(data).astype(np.uint32)
    return _once(jnp.stack(_hash(key, jnp.zeros_like(number), number)), key)


def _random_bits(key: jax.Array, bit_width: int, shape: tuple[int, ...]) -> jax.Array:
    high, low = _hashed_counts(key, shape)
    kind = np.dtype(f"uint{bit_width}")
    if bit_width == 64:
        return _once((high.astype(kind) << np.uint64(32)) | low.astype(kind), key)
    return _once((high ^ low).astype(kind), key)


_QUICK = define_prng_impl(
    key_shape=(2,), seed=_seed, split=_split, random_bits=_random_bits, fold_in=_fold_in,
    name="neuralucb_threefry2x32", tag="nfry",
)  # fmt: skip
