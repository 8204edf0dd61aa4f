"""The record of observations: what is summed is what was observed."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb.history import BLOCK, append, empty, total


@pytest.mark.parametrize("capacity", [3, BLOCK, BLOCK + 1, 3 * BLOCK - 7])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_a_total_covers_every_observed_row_once(capacity, share):
    count = int(capacity * share)
    record = empty(np.zeros(2, np.float32), capacity=capacity)
    record = record._replace(
        rewards=jnp.arange(capacity, dtype=jnp.float32), seen=jnp.int32(count), rounds=jnp.int32(count)
    )
    rows, rewards = total(record, lambda contexts, rewards, weights: (weights.sum(), (weights * rewards).sum()))
    assert_allclose(rows, count)
    assert_allclose(rewards, np.arange(count).sum())


def test_appending_keeps_contexts_of_any_structure():
    record = empty({"x": np.zeros(2, np.float32), "arm": np.int32(0)}, capacity=4)
    record = append(record, {"x": np.float32([1, 2]), "arm": np.int32(3)}, jnp.float32(0.5))
    assert record.seen == 1
    assert record.contexts["arm"][0] == 3
    assert_allclose(record.contexts["x"][0], [1, 2])
    assert_allclose(record.rewards[0], 0.5)


def test_a_full_history_says_so():
    record = append(empty(np.zeros(2, np.float32), capacity=1), np.ones(2, np.float32), 1.0)
    with pytest.raises(ValueError, match="history is full: its capacity is 1"):
        append(record, np.ones(2, np.float32), 1.0)
