"""The ledger: pending, expired and explained decisions, and the memory they use."""

import time

import numpy as np
import pytest

from tests.online.helpers import ARMS, DIM, bandit, contexts


def test_expired_decisions_accept_no_reward():
    one = bandit()
    old = one.select(contexts())
    time.sleep(0.05)
    new = one.select(contexts())
    assert one.expire(older_than=0.03) == 1
    with pytest.raises(ValueError, match="has expired"):
        one.observe(old.id, 1.0)
    one.observe(new.id, 1.0)
    assert (one.health().expired, one.health().pending) == (1, 0)
    with pytest.raises(ValueError, match="older_than"):
        one.expire(float("nan"))


def test_expiring_at_once_expires_all_even_if_the_clock_was_set_back(monkeypatch):
    one = bandit()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    one.select(contexts())
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    assert one.expire(older_than=1) == 0
    assert one.expire(older_than=0) == 1


def test_a_few_pending_decisions_do_not_keep_their_batch_in_memory():
    one = bandit(learning="manual")
    decisions = one.select_many(contexts(0, 1000, ARMS))
    whole = one.health().pending_bytes
    one.observe_many([decision.id for decision in decisions[1:]], np.ones(999))
    assert one.health().pending_bytes < whole / 500
    assert one.explain(decisions[0].id).status == "pending"
    one.observe(decisions[0].id, 1.0)


def test_pending_decisions_hold_no_jax_buffers():
    """Each would keep kilobytes alive, which no count of bytes shows."""
    one = bandit(learning="manual")
    one.select(contexts())
    one.select_many(contexts(0, 3, ARMS))
    assert all(asked.rows.flags.owndata for asked in one.state.ledger.pending.values())


def test_a_tie_does_not_count_as_exploration():
    one = bandit()
    one.select(np.ones((ARMS, DIM)))
    assert one.health().explored == 0
