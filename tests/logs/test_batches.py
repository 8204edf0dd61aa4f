"""Batches of a log, whatever the length of its chunks."""

import numpy as np
import pytest

from neuralucb.logs import recorded
from neuralucb.logs.batches import batches
from tests.evaluation.worlds import (
    ARMS,
    in_memory,
)


@pytest.mark.parametrize("lengths", [[8192] * 12, [3, 5000, 1, 40_000, 70_000, 2], [2]], ids=["even", "odd", "two"])
def test_batches_hold_every_decision_once_and_only_the_last_has_room(lengths):
    total, first, chunks = sum(lengths), 1, []
    for n in lengths:
        chunks.append(recorded(np.ones((n, 2)), np.zeros(n, int), np.zeros(n), np.full((n, ARMS), 1 / 3), first=first))
        first += n
    for begin, end in ((0, None), (total // 3, None), (0, total // 2), (total // 3, total // 2 + 1)):
        made = list(batches(in_memory(*chunks), begin=begin, end=end))
        lines = np.concatenate([one.line[one.valid] for one in made])
        assert lines.tolist() == list(range(begin + 1, (total if end is None else end) + 1))
        assert len({len(one.line) for one in made}) == 1
        assert all(one.valid.all() for one in made[:-1])
        assert made[-1].valid.any()
