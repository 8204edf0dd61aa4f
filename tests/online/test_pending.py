"""Pending decisions: a dictionary of which moments can be kept, and work that leaves the lock to others."""

import threading
from types import SimpleNamespace

import numpy as np

from neuralucb import OnlineBandit
from neuralucb.online import expiry, ledger
from neuralucb.online.pending import BLOCK, Pending
from tests.online.helpers import ARMS, contexts, fingerprint, linear, make


def batch(time):
    return SimpleNamespace(time=time)


def test_it_is_a_dictionary_whose_frozen_moments_do_not_change():
    generator = np.random.default_rng(0)
    pending, plain, frozen, number = Pending(), {}, [], 0
    for step in range(600):
        if generator.random() < 0.6 or not plain:
            count = int(generator.choice([1, 1, 5, 2 * BLOCK + 3]))
            one = batch(float(step))
            pending.put(number, count, one)
            plain |= dict.fromkeys(range(number, number + count), one)
            number += count
        else:
            for gone in generator.choice(list(plain), size=min(len(plain), 40), replace=False).tolist():
                assert pending.pop(gone) is plain.pop(gone)
        if step % 50 == 0:
            frozen.append((pending.freeze(), dict(plain)))
        assert len(pending) == len(plain)
    assert list(pending) == list(plain)
    assert list(pending.values()) == list(plain.values())
    assert all(each in pending and pending[each] is plain[each] for each in plain)
    assert number not in pending
    for blocks, then in frozen:
        assert {each: one for block in blocks for each, one in block.items()} == then


def test_old_ones_are_found_a_block_at_a_time_whatever_the_order_of_their_times():
    times = np.random.default_rng(0).permutation(1000).astype(float)
    pending = Pending()
    for number, time in enumerate(times.tolist()):
        pending.put(number, 1, batch(time))
    found = []
    while some := pending.older_than(300.0, 1000.0, below=900):
        assert len(some) <= BLOCK
        found += some
        for number in some:
            pending.pop(number)
    assert sorted(found) == np.flatnonzero(times[:900] <= 700).tolist()


def beside(monkeypatch, module, action):
    """Run an action in another thread, to its end, whenever work over all pending decisions lets others run."""

    def other():
        thread = threading.Thread(target=action)
        thread.start()
        thread.join(60)
        assert not thread.is_alive(), "the lock was held"

    monkeypatch.setattr(module, "let_others_run", other)


def test_a_snapshot_lets_others_decide_and_has_none_of_their_decisions(tmp_path, monkeypatch):
    with OnlineBandit(linear(), journal=tmp_path / "journal", learning="manual") as one:
        ids = [decision.id for decision in one.select_many(contexts(0, 3 * BLOCK, ARMS))]
        one.add_arm("a", [1.0])
        one.add_arm("b", [2.0])
        one.select([0.0, 0.0])
        one.select([0.0, 0.0], arms=["b"])
        before = fingerprint(one)

        def others():
            one.observe(ids.pop(), 1.0)
            one.select(contexts(1))

        with monkeypatch.context() as patched:
            beside(patched, ledger, others)
            one.save(tmp_path / "saved")
        after = fingerprint(one)
        assert len(ids) < 3 * BLOCK - 3
    assert fingerprint(OnlineBandit.load(tmp_path / "saved")) == before
    with OnlineBandit.load(tmp_path / "journal") as again:
        assert fingerprint(again) == after


def test_expiring_lets_others_decide_and_their_decisions_stay_pending(monkeypatch):
    one = OnlineBandit(linear(), learning="manual")
    one.select_many(contexts(0, 4 * BLOCK + 1, ARMS))
    made = []
    with monkeypatch.context() as patched:
        beside(patched, expiry, lambda: made.append(one.select(contexts(1)).id))
        assert one.expire(older_than=0) == 4 * BLOCK + 1
    assert len(made) == 4
    one.observe_many(made, np.ones(4))
    assert one.health().expired == 4 * BLOCK + 1


def test_pending_bytes_are_counted_as_decisions_come_and_go():
    one = OnlineBandit(make("lin-ucb"), learning="manual")
    ids = [decision.id for decision in one.select_many(contexts(0, 300, ARMS))]
    ids += [one.select(row).id for row in contexts(1, 20, ARMS)]
    for some in np.array_split(np.random.default_rng(0).permutation(ids), 9):
        one.observe_many(some.tolist(), np.ones(len(some)))
        distinct = {id(each): each.bytes for each in one.state.ledger.pending.values()}
        assert one.health().pending_bytes == sum(distinct.values())
    assert one.health().pending_bytes == 0
