"""The contract's helpers: a fingerprint of a belief."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralucb import build
from neuralucb.policy import fingerprint

BELIEF = {"a": np.float32([1, 2, 3, 4]), "key": jax.random.key(3)}


def test_equal_beliefs_have_one_fingerprint():
    policy = build("neural-ucb", dim=3, width=4)
    first, second = (fingerprint(policy.init(jax.random.key(0))) for _ in range(2))
    assert first == second
    assert first != fingerprint(policy.init(jax.random.key(1)))
    assert len(fingerprint(())) == 64


@pytest.mark.parametrize(
    "other",
    [
        {"a": np.float32([1, 2, 3, 4.0000005])},
        {"a": np.float64([1, 2, 3, 4])},
        {"a": np.float32([[1, 2], [3, 4]])},
        {"key": jax.random.key(4)},
    ],
)
def test_a_bit_a_type_a_shape_or_a_key_changes_the_fingerprint(other):
    assert fingerprint(BELIEF) == fingerprint(jax.tree.map(jnp.asarray, BELIEF))
    assert fingerprint(BELIEF | other) != fingerprint(BELIEF)
