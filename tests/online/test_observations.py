"""Past observations: rows that do not change, in arrays that grow."""

from contextlib import nullcontext

import jax
import numpy as np
from numpy.testing import assert_array_equal

from neuralucb.online.context_shape import ContextShape
from neuralucb.online.observations import Observations

DIM = 3
SHAPE = ContextShape(jax.tree.structure(0), (((DIM,), "<f4"),))
ROWS = np.arange(600 * DIM, dtype=np.float32).reshape(-1, DIM)


def filled(rows, window=None):
    made = Observations(SHAPE, window)
    add(made, 0, rows)
    return made


def add(observations, first, end):
    rows = ROWS[first:end]
    observations.add(rows, rows[:, 0].astype(np.float64), about=rows.astype(np.float64))


class AddsRows:
    """A lock before which, the second time, others come in: while the first rows are copied."""

    def __init__(self, observations):
        self.observations, self.held = observations, 0

    def __enter__(self):
        self.held += 1
        if self.held == 2:
            add(self.observations, 200, 230)

    def __exit__(self, *problem):
        pass


def test_room_is_made_before_it_is_needed_and_rows_that_come_meanwhile_are_kept():
    made = filled(200)
    before = made.lend()[0]
    assert len(before) == 256
    made.make_room(AddsRows(made))
    assert made.total == 230
    assert len(made.lend()[0]) == 512
    add(made, 230, 500)
    for found, expected in zip((*made.in_window(), made.about()), (ROWS[:500], ROWS[:500, 0], ROWS[:500]), strict=True):
        assert_array_equal(found, expected)
    assert_array_equal(before[:230], ROWS[:230])  # who has the old arrays still sees what they held


def test_no_room_is_made_where_there_is_enough_or_rows_are_anothers():
    few, follower = filled(100), Observations(SHAPE, None)
    few.make_room(nullcontext())
    assert len(few.lend()[0]) == 256
    follower.follow(filled(250))
    follower.make_room(nullcontext())
    assert len(follower.lend()[0]) == 256
