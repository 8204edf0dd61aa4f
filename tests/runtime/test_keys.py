"""Keys that compile faster: the same numbers as JAX's, computed once wherever they are used."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from numpy.testing import assert_array_equal

from neuralucb.runtime.keys import quick

DRAWS = {
    "split": lambda key: random.key_data(random.split(key, (2, 3))),
    "fold_in": lambda key: random.key_data(random.fold_in(key, jnp.uint32(3_000_000_000))),
    "normal": lambda key: random.normal(random.split(key)[1], (3, 4), jnp.float32),
    "normal64": lambda key: random.normal(key, (3,), jnp.float64),
    "one": lambda key: random.uniform(key, dtype=jnp.float32),
    "bits8": lambda key: random.bits(key, (5,), jnp.uint8),
    "bits16": lambda key: random.bits(key, (5,), jnp.uint16),
    "permutation": lambda key: random.permutation(key, 11),
    "categorical": lambda key: random.categorical(key, jnp.zeros(4, jnp.float32)),
}


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_quick_key_draws_the_numbers_of_the_key(key, draw):
    expected = draw(key)
    assert_array_equal(draw(quick(key)), expected)
    assert_array_equal(jax.jit(lambda data: draw(quick(random.wrap_key_data(data))))(random.key_data(key)), expected)


def test_so_do_many_at_once_and_without_64_bits(key):
    keys = random.split(key, 3)
    draw = jax.vmap(lambda key: random.normal(random.fold_in(key, 7), (2,), jnp.float32))
    assert_array_equal(draw(quick(keys)), draw(keys))


def test_a_hash_is_one_kernel_although_several_read_it(key):
    def several(seed):
        inner = random.fold_in(quick(random.key(seed)), 1)
        return random.normal(inner, (7,), jnp.float32), random.uniform(inner, (9,), jnp.float32)

    text = jax.jit(several).lower(np.uint32(1)).compile().as_text()
    assert " while(" not in text
    assert text.count("divide(") >= 3  # none of them left out: fold_in, normal and uniform


def test_keys_that_are_not_threefrys_stay_as_they_are(monkeypatch, key):
    other = random.key(1, impl="rbg")
    assert quick(other) is other
    twice = quick(quick(key))
    assert twice.dtype == quick(key).dtype
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert quick(key) is key
