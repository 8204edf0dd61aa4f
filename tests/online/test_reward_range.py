"""Rewards outside the range that the caller knows: refused, or clipped and counted, as asked."""

import numpy as np
import pytest

from neuralucb import InputError, OnlineBandit
from neuralucb.logs import open_log, recorded, write_log
from tests.online.helpers import ARMS, DIM, contexts, fingerprint, linear

REFUSING = {"reward_range": (0, 1)}
CLIPPING = {"reward_range": (0, 1), "outside": "clip"}


def rewards_of(one):
    return one.state.observations.in_window()[1].tolist()


def decided(one, count):
    return [decision.id for decision in one.select_many(contexts(0, count, ARMS))]


def test_a_reward_outside_is_refused_and_changes_nothing():
    one = OnlineBandit(linear(), **REFUSING)
    first, *others = decided(one, 4)
    before = fingerprint(one)
    for reward in (1.5, -1e-9, 1e300):
        with pytest.raises(InputError, match=r"reward must be from 0 to 1, the reward_range, got .*outside=.clip"):
            one.observe(first, reward)
    with pytest.raises(InputError, match="got 7"):
        one.observe_many(others, [0.5, 7, 1.0])  # all or none
    with pytest.raises(InputError, match="got 7"):
        one.fit(contexts(1, 3), None, [0.5, 7, 1.0])
    assert fingerprint(one) == before
    one.observe_many([first, *others], [0, 0.5, 1, 0.5])  # the bounds are inside
    assert one.health().clipped == 0


def test_a_reward_outside_is_clipped_and_counted_if_so_asked():
    one = OnlineBandit(linear(), **CLIPPING)
    one.observe_many(decided(one, 4), [0.5, 7, -1e300, 1.0])
    one.fit(contexts(1, 3), None, [2.0, 3.0, 0.25])
    assert rewards_of(one) == [0.5, 1.0, 0.0, 1.0, 1.0, 1.0, 0.25]
    assert one.health().clipped == 4
    for reward in (np.nan, np.inf):
        with pytest.raises(InputError, match="finite"):  # unknown, not extreme
            one.fit(contexts(1, 1), None, [reward])
    free = OnlineBandit(linear())  # the control
    free.fit(contexts(1, 3), None, [2.0, 3.0, 0.25])
    assert rewards_of(free) == [2.0, 3.0, 0.25]


def log_with(reward, folder):
    rewards = np.linspace(0, 1, 50)
    rewards[40] = reward
    chunk = recorded(contexts(0, 50, ARMS), np.zeros(50, int), rewards, np.full((50, ARMS), 1 / ARMS))
    write_log(folder / "log.parquet", [chunk])
    return open_log(folder / "log.parquet")


def test_a_log_is_refused_as_a_whole_or_clipped(tmp_path):
    one = OnlineBandit(linear(), learning="manual", **REFUSING)
    before = fingerprint(one)
    with pytest.raises(InputError, match="got 9"):
        one.fit(log_with(9.0, tmp_path))
    assert fingerprint(one) == before
    assert one.fit(log_with(np.nan, tmp_path)).observations == 49  # a reward that was not seen is no reward outside
    clipping = OnlineBandit(linear(), learning="manual", **CLIPPING)
    assert clipping.fit(log_with(9.0, tmp_path)).observations == 50
    assert clipping.health().clipped == 1


def test_a_journal_resumes_with_its_range_and_its_count(tmp_path):
    with OnlineBandit(linear(), journal=tmp_path / "journal", **CLIPPING) as one:
        one.observe_many(decided(one, 3), [0.5, 7, 8])
    with OnlineBandit.load(tmp_path / "journal") as again:
        assert fingerprint(again) == fingerprint(one)
        assert again.health().clipped == 2
        again.observe_many(decided(again, 1), [9])
        assert again.health().clipped == 3
        again.save(tmp_path / "saved")
    assert OnlineBandit.load(tmp_path / "saved").settings["reward_range"] == [0.0, 1.0]
    with OnlineBandit(linear(), journal=tmp_path / "journal") as free:  # other settings may change at a restart
        free.observe_many(decided(free, 1), [9])
        assert rewards_of(free) == [0.5, 1.0, 1.0, 1.0, 9.0]  # what was clipped stays so


def test_a_bandit_from_before_there_were_ranges_is_restored():
    one = OnlineBandit(linear())
    one.fit(np.ones((2, DIM)), None, [1.0, 2.0])
    fields, arrays = one.state.export()
    del fields["counts"]["clipped"]
    one.state.restore(fields, arrays)
    assert one.health().clipped == 0
