"""Notes that policies take of decisions, through an `OnlineBandit`: late rewards, a crash, a window, a log."""

import jax
import numpy as np
import pytest

from neuralucb import OnlineBandit
from neuralucb.policy import Slot, remember
from tests.online.helpers import ARMS, DIM, contexts, fingerprint, make

NOTING = ("epoch-greedy", "banditron", "online-cover", "exp4")


def request(row, shared):
    if not shared:
        return row
    return Slot._make((np.broadcast_to(row[0], (ARMS, DIM)), np.arange(ARMS, dtype=np.int32)))


def settings_of(name):
    return {"experts": "lin-ucb+banditron"} if name == "exp4" else {}


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize("name", NOTING)
def test_a_late_reward_is_observed_with_the_note_of_its_decision(name, shared):
    policy = make(name, shared_by=ARMS if shared else None, **settings_of(name))
    one = OnlineBandit(policy, learning="manual", floor=0.1)
    belief, everything, kept = one.state.belief, np.ones(ARMS, bool), []
    order = [(0, 1, 2), (2, 0), (1,), (3, 4, 5), (5, 3, 4)]
    for step, (which, rows) in enumerate(zip(order, contexts(0, 5, ARMS), strict=True)):
        if step in (0, 3):
            for _ in which:
                given = request(rows, shared)
                decision = one.select(given)
                choice = policy.select(jax.random.key(0), belief, given)
                played = choice._replace(arm=np.int32(decision.position), propensity=np.float32(decision.propensities))
                kept.append((decision.id, remember(policy, belief, given, everything, played)))
            continue
        for index in which:
            one.observe(kept[index][0], 0.1 * index)
            belief = policy.observe(belief, kept[index][1], np.float32(0.1 * index))
    one.learn()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), one.state.belief, belief)


def test_notes_survive_a_crash_in_the_journal_and_in_a_snapshot(tmp_path):
    policy = make("exp4", **settings_of("exp4"))
    whole, rows = OnlineBandit(policy, learning="manual", seed=3), contexts(1, 12, ARMS)
    folder, ids = tmp_path / "journal", []
    for part in (rows[:5], rows[5:8], rows[8:]):
        with OnlineBandit(policy, learning="manual", seed=3, journal=folder, snapshot_every=4) as cut:
            for row in part:
                ids.append((whole.select(row).id, cut.select(row).id))
            for index in (len(ids) - 2, len(ids) - 1):  # others stay pending
                whole.observe(ids[index][0], 1.0)
                cut.observe(ids[index][1], 1.0)
            whole.learn()
            cut.learn()
            assert fingerprint(cut)[1].keys() == fingerprint(whole)[1].keys()
            ours, theirs = (jax.tree.leaves(each.state.belief) for each in (cut, whole))
            jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def test_a_window_observes_again_with_notes_and_a_fit_without():
    policy = make("online-cover")
    one = OnlineBandit(policy, learning="manual", window=6)
    rows = contexts(2, 9, ARMS)
    one.fit(rows[:3, 0], rewards=[1.0, 0.0, 0.5])
    assert not one.state.observations.in_window()[0].note.any()
    for row in rows[3:]:
        one.observe(one.select(row).id, float(row[0, 0]))
    one.learn()
    stored, rewards = one.state.observations.in_window()
    assert (stored.note[:, 0] > 0).all()
    belief = policy.init(jax.random.key(0))
    for index, reward in enumerate(rewards):
        belief = policy.observe(belief, jax.tree.map(lambda leaf: leaf[index], stored), np.float32(reward))  # noqa: B023
    np.testing.assert_allclose(one.state.belief.b, belief.b, rtol=1e-6)


@pytest.mark.parametrize("name", NOTING)
def test_a_note_depends_on_what_was_played_not_on_what_the_policy_that_chose_believed(name):
    """As an expert of EXP4, a policy takes notes of decisions whose means are not its own."""
    policy = make(name, **settings_of(name))
    belief, rows, everything = policy.init(jax.random.key(0)), contexts(3, 4, ARMS), np.ones(ARMS, bool)
    for row in rows[:3]:
        choice = policy.select(jax.random.key(1), belief, row)
        belief = policy.observe(belief, remember(policy, belief, row, everything, choice), np.float32(1))
    choice = policy.select(jax.random.key(1), belief, rows[3])
    other = choice._replace(mean=-np.asarray(choice.mean), score=-np.asarray(choice.score))
    ours, theirs = (remember(policy, belief, rows[3], everything, each).note for each in (choice, other))
    np.testing.assert_array_equal(ours, theirs)


def test_an_exploration_of_epoch_greedy_ends_with_its_own_reward_not_with_a_late_one():
    one = OnlineBandit(make("epoch-greedy", exploitation=1.0), learning="manual")
    rows = contexts(4, 4, ARMS)

    def explores(decision):
        return np.allclose(decision.propensities, 1 / ARMS)

    one.observe(one.select(rows[0]).id, 1.0)  # the first exploration, which one greedy choice follows
    late, greedy = one.select(rows[1]), one.select(rows[2])
    assert not any(map(explores, (late, greedy)))
    one.observe(greedy.id, 1.0)
    exploration = one.select(rows[3])
    assert explores(exploration)
    one.observe(late.id, 1.0)
    assert explores(one.select(rows[3]))
    one.observe(exploration.id, 1.0)
    assert not explores(one.select(rows[3]))
    assert int(one.state.belief.epoch) == 2
