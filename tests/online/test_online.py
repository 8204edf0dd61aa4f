"""OnlineBandit: decisions, late rewards, learning, arms, saving. Bad calls change nothing."""

import hashlib
import json
import threading
import time

import jax
import numpy as np
import pytest

from neuralucb import OnlineBandit, StorageError, build
from neuralucb.algorithms import ALGORITHMS
from neuralucb.confidence import constant
from neuralucb.designs import diagonal
from neuralucb.estimators.neural import neural
from neuralucb.networks.network import from_functions
from neuralucb.online import snapshots
from neuralucb.policy import Slot, policy
from neuralucb.rules import ucb
from neuralucb.training import sgd

DIM, ARMS = 3, 4
SMALL = {
    "neural-ucb": {"width": 8, "steps": 5, "design": "diagonal"},
    "neural-epsilon-greedy": {"width": 8, "steps": 5},
    "neural-ucb0": {"width": 8, "design": "diagonal"},
    "neural-epsilon-greedy0": {"width": 8, "design": "diagonal"},
    "bootstrapped-nn": {"width": 8, "steps": 5, "networks": 2},
    "kernel-ucb": {"budget": 40},
    "neural-ts": {"width": 8, "steps": 5, "design": "diagonal"},
    "neural-square-cb": {"width": 8, "steps": 5},
}


def make(name="neural-ucb", *, shared_by=None, **settings):
    rounds = 100 if name == "kernel-ucb" else None
    return build(name, dim=DIM, rounds=rounds, shared_by=shared_by, **{**SMALL.get(name, {}), **settings})


def bandit(**settings):
    return OnlineBandit(make(), **{"schedule": "10", **settings})


def contexts(seed=0, *lengths):
    return np.random.default_rng(seed).normal(size=(*(lengths or (ARMS,)), DIM)).astype(np.float32)


def play(one, rounds, seed=0):
    """Rounds in which the reward is the first feature; returns every score and mean."""
    rows, seen = contexts(seed, rounds, ARMS), []
    for row in rows:
        decision = one.select(row)
        one.observe(decision.id, float(row[decision.position, 0]))
        seen.append(np.concatenate([decision.score, decision.mean, [decision.position]]))
    return np.asarray(seen)


def fingerprint(one):
    """All that a bandit knows."""
    fields, arrays = one._state.export()
    return repr(fields), {name: array.tobytes() for name, array in arrays.items()}


def test_a_decision_says_what_the_policy_believes_of_every_arm():
    one = bandit()
    rows = contexts()
    decision = one.select(rows)
    choice = make().select(jax.random.key(0), one._state.belief, rows)
    np.testing.assert_allclose(decision.mean, choice.mean, rtol=1e-5)
    np.testing.assert_allclose(decision.width, choice.width, rtol=1e-5)
    np.testing.assert_allclose(decision.score, choice.score, rtol=1e-5)
    assert decision.arm == decision.position == int(np.argmax(decision.score))
    assert decision.version == 0
    assert one.select(rows).id != decision.id


def test_padding_and_batches_do_not_change_a_choice():
    one, other = bandit(), bandit()
    rows = contexts(1, 7, 5)
    single = [one.select(row.tolist()) for row in rows]
    many = other.select_many(rows)
    for a, b in zip(single, many, strict=True):
        assert a.arm == b.arm
        np.testing.assert_allclose(a.score, b.score, rtol=1e-5)


def test_arms_that_are_not_available_are_not_chosen():
    one = bandit()
    for arm in range(ARMS):
        assert one.select(contexts(arm), available=np.arange(ARMS) == arm).arm == arm
    mask = np.eye(ARMS, dtype=bool)
    assert [d.arm for d in one.select_many(contexts(2, ARMS, ARMS), available=mask)] == list(range(ARMS))


def test_a_caller_may_use_his_array_again():
    one, rows = bandit(), contexts()
    decision = one.select(rows)
    expected = rows[decision.position].copy()
    rows[:] = 99
    one.observe(decision.id, 1.0)
    np.testing.assert_array_equal(one._state.observations.kept()[0][0], expected)
    with pytest.raises(ValueError, match="read-only"):
        decision.score[0] = 1


def test_rewards_come_late_and_in_any_order():
    late, prompt = bandit(learning="manual"), bandit(learning="manual")
    rows = contexts(0, 6, ARMS)
    decisions = [late.select(row) for row in rows]
    for index in (3, 0, 5):
        late.observe(decisions[index].id, 1.0)
    late.observe_many([decisions[index].id for index in (1, 4)], [0.5, 2])
    assert late.health().pending == 1
    assert late.health().observed == 5
    played = np.stack([rows[index, decisions[index].position] for index in (3, 0, 5, 1, 4)])
    prompt.fit(played, None, [1, 1, 1, 0.5, 2])
    late.learn()
    for a, b in zip(jax.tree.leaves(late._state.belief), jax.tree.leaves(prompt._state.belief), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), 1e300, 10**400, "many", "1", 1j, None])
def test_a_bad_reward_is_refused_and_changes_nothing(reward):
    one = bandit()
    good, other = one.select(contexts()), one.select(contexts())
    before = fingerprint(one)
    with pytest.raises(ValueError, match="reward"):
        one.observe(good.id, reward)
    with pytest.raises(ValueError, match="reward"):
        one.observe_many([other.id, good.id], [1.0, reward])
    assert fingerprint(one) == before


def test_unknown_second_and_foreign_rewards_are_refused_and_change_nothing():
    one, other = bandit(), bandit()
    decision, foreign = one.select(contexts()), other.select(contexts())
    waiting = one.select(contexts())
    one.observe(decision.id, 1.0)
    before = fingerprint(one)
    for wrong, why in (
        (decision.id, "has had its reward"),
        (foreign.id, "not of this bandit"),
        (f"{one.name}-99", "was never made"),
        ("nonsense", "not of this bandit"),
    ):
        with pytest.raises(ValueError, match=why):
            one.observe(wrong, 1.0)
        with pytest.raises(ValueError, match=why):
            one.observe_many([waiting.id, wrong], [1.0, 1.0])
    with pytest.raises(ValueError, match="distinct"):
        one.observe_many([waiting.id, waiting.id], [1.0, 1.0])
    with pytest.raises(ValueError, match="1 numbers"):
        one.observe_many([waiting.id], [1.0, 2.0])
    assert fingerprint(one) == before


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (np.zeros((ARMS, DIM + 1)), "an array .arms, 3., got shape .4, 4."),
        (np.zeros(DIM), "got shape .3,.; if arms share it, add arms first"),
        (np.full((ARMS, DIM), 1e300), "finite, in float32"),
        ([[1e300] * DIM], "finite, in float32"),
        (np.zeros((0, DIM)), "got none"),
        (np.full((ARMS, DIM), np.nan), "finite"),
        ([[1.0, 2.0], [1.0]], "equally many"),
        ([["a", "b", "c"]], "numbers"),
        ({"x": np.zeros((ARMS, DIM))}, "got a dict"),
        (Slot(np.zeros((ARMS, DIM)), np.zeros(ARMS)), "got a Slot"),
        (None, "add arms first"),
    ],
)
def test_bad_contexts_are_refused_with_what_was_expected_and_got(given, why):
    one = bandit()
    before = fingerprint(one)
    with pytest.raises(ValueError, match=why):
        one.select(given)
    assert fingerprint(one) == before


@pytest.mark.parametrize(
    ("mask", "why"), [(np.zeros(ARMS, bool), "at least one"), (np.ones(3, bool), "shape .4,."), ([1] * 4, "booleans")]
)
def test_a_bad_mask_is_refused(mask, why):
    with pytest.raises(ValueError, match=why):
        bandit().select(contexts(), available=mask)


def test_a_decision_without_chance_has_no_propensity_and_a_floor_gives_it_the_exact_one():
    plain, floored = bandit(), bandit(floor=0.2)
    rows = contexts()
    assert plain.select(rows).propensity is None
    assert plain.select(rows).deterministic
    assert not floored.select(rows).deterministic
    mask = np.array([True, True, True, False])
    seen = floored.select_many(np.tile(rows[None], (2000, 1, 1)), available=np.tile(mask, (2000, 1)))
    best = int(np.argmax(np.where(mask, seen[0].score, -np.inf)))
    for decision in seen:
        assert decision.propensity == pytest.approx(0.8 * (decision.position == best) + 0.2 / 3, abs=1e-6)
        assert decision.propensities[3] == 0
    taken = np.bincount([decision.position for decision in seen], minlength=ARMS) / 2000
    np.testing.assert_allclose(taken, seen[0].propensities, atol=5 * np.sqrt(0.25 / 2000))
    assert taken[3] == 0
    with pytest.raises(ValueError, match="floor must be a probability"):
        bandit(floor=1.5)


def test_propensities_survive(tmp_path):
    one = bandit(floor=0.1)
    waiting = one.select(contexts())
    again = OnlineBandit.load(one.save(tmp_path / "saved"))
    read = again.explain(waiting.id).decision
    assert read.propensity == waiting.propensity
    np.testing.assert_array_equal(read.propensities, waiting.propensities)
    assert again.settings["floor"] == 0.1


def test_pending_decisions_can_be_counted_so_that_a_batch_explores():
    rows = np.tile(contexts()[None], (12, 1, 1))
    for counted, arms in ((False, {1}), (True, {2, 3, 4})):
        one = OnlineBandit(make(exploration=10.0), count_pending=counted)
        assert len({decision.arm for decision in one.select_many(rows)}) in arms
        singles = OnlineBandit(make(exploration=10.0), count_pending=counted)
        assert len({singles.select(rows[0]).arm for _ in range(12)}) in arms


def test_counting_pending_ends_with_their_reward():
    one = OnlineBandit(make("lin-ucb"), count_pending=True, learning="manual")
    plain = OnlineBandit(make("lin-ucb"), learning="manual")
    rows = contexts()
    for decision in one.select_many(np.tile(rows[None], (5, 1, 1))):
        one.observe(decision.id, 1.0)
        plain.fit(rows[[decision.position]], None, [1.0])
    np.testing.assert_allclose(one.select(rows).score, plain.select(rows).score, rtol=1e-6)


def test_expired_decisions_take_no_reward():
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


def test_giving_up_at_once_gives_up_all_though_the_clock_was_set_back(monkeypatch):
    one = bandit()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    one.select(contexts())
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    assert one.expire(older_than=1) == 0
    assert one.expire(older_than=0) == 1


def test_it_learns_when_the_schedule_says():
    one = bandit(schedule="3:6,10")
    learned = []
    for seed in range(20):
        play(one, 1, seed)
        learned.append(one.health().learned)
    assert [t + 1 for t in range(20) if learned[t] > (learned[t - 1] if t else 0)] == [3, 6, 10, 20]


def test_by_hand_it_learns_only_then():
    one = bandit(learning="manual")
    play(one, 25)
    assert one.health().learned == 0
    lesson = one.learn()
    assert lesson.promoted
    assert lesson.observations == 25
    assert one.health().learned == 1


def slow_learning(one, monkeypatch):
    """Learning that waits to be let go."""
    go, began, real = threading.Event(), threading.Event(), one._programs.learn

    def learn(*args):
        began.set()
        assert go.wait(30)
        return real(*args)

    monkeypatch.setattr(one._programs, "learn", learn)
    return began, go


def test_nobody_waits_for_learning_and_nothing_observed_meanwhile_is_lost(monkeypatch):
    one, reference = bandit(learning="background", schedule="10"), bandit(learning="manual")
    began, go = slow_learning(one, monkeypatch)
    play(one, 10)
    assert began.wait(10)
    play(one, 7, seed=1)  # while it learns
    assert one.health().learned == 0
    go.set()
    one.close()
    assert one.health().learned == 1
    play(reference, 10)
    reference.learn()
    ours, theirs = one._state.observations.kept(), reference._state.observations.kept()
    np.testing.assert_array_equal(ours[0][:10], theirs[0])
    contexts, rewards = one._state.observations.since(10)
    expected, _ = reference._programs.absorb(reference._state.belief, contexts, rewards)
    for a, b in zip(jax.tree.leaves(one._state.belief), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_thread_that_cannot_learn_says_so(monkeypatch):
    one = bandit(learning="background", schedule="5")
    monkeypatch.setattr(one._programs, "learn", lambda *_: 1 / 0)
    play(one, 5)
    patience = time.monotonic() + 20
    while one.health().failure is None and time.monotonic() < patience:
        time.sleep(0.01)
    one.close()
    assert "ZeroDivisionError" in one.health().failure


def test_a_lesson_that_diverged_is_not_promoted():
    one = OnlineBandit(make(step_size=1e8), schedule="10")
    before = jax.tree.leaves(one._state.belief.params)
    play(one, 10)
    assert (one.health().learned, one.health().diverged) == (0, 1)
    for a, b in zip(before, jax.tree.leaves(one._state.belief.params), strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.isfinite(one.select(contexts()).score).all()


def test_arms_come_and_go_by_id():
    one = bandit()
    for arm in ("a", "b", 7):
        one.add_arm(arm, [0.1 * len(str(arm)), 1.0])
    decision = one.select([0.5])
    assert decision.arm in ("a", "b", 7)
    one.remove_arm("b")
    assert {one.select([0.5]).arm for _ in range(5)} <= {"a", 7}
    assert one.select([0.5], arms=["a"]).arm == "a"
    assert {d.arm for d in one.select_many([[0.5], [0.2]], arms=["a", 7])} <= {"a", 7}
    one.observe(decision.id, 1.0)
    for call, why in (
        (lambda: one.add_arm("a", [0, 0]), "there already"),
        (lambda: one.add_arm("c", [0]), "2 numbers"),
        (lambda: one.add_arm("c", [np.nan, 0]), "finite"),
        (lambda: one.add_arm(True, [0, 0]), "a string"),
        (lambda: one.remove_arm("b"), "not there"),
        (lambda: one.select([0.5], arms=["b"]), "not there"),
        (lambda: one.select([0.5], arms=[]), "at least one"),
        (lambda: one.select([0.5], arms=["a", "a"]), "distinct"),
        (lambda: one.select([0.5, 0.5]), "1 numbers"),
    ):
        before = fingerprint(one)
        with pytest.raises(ValueError, match=why):
            call()
        assert fingerprint(one) == before


@pytest.mark.parametrize("counted", [False, True])
def test_batches_over_new_arms_compile_nothing_either(counted):
    one = bandit(learning="manual", count_pending=counted)
    for arm in range(5):
        one.add_arm(arm, [float(arm), 0.0])
    one.select([1.0])
    one.select_many([[1.0], [2.0]])
    compiled = one.health().compiled
    for arm in range(5, 8):
        one.add_arm(np.int64(arm), [float(arm), 0.0])
        assert one.select([1.0], arms=np.arange(arm)).arm < arm
        one.select_many([[1.0], [2.0]])
    assert one.health().compiled == compiled


def test_new_arms_compile_nothing_up_to_the_next_power_of_two():
    one = bandit(learning="manual")
    for arm in range(5):
        one.add_arm(arm, [float(arm), 0.0])
    one.select([1.0])
    compiled = one.health().compiled
    for arm in range(5, 8):
        one.add_arm(arm, [float(arm), 0.0])
        one.select([1.0])
    one.remove_arm(0)
    one.select([1.0])
    assert one.health().compiled == compiled


def test_arms_may_have_places_in_the_network_instead_of_features():
    one = OnlineBandit(make(shared_by=3, encoding="heads"))
    assert one.select([0.1, 0.2, 0.3]).arm in (0, 1, 2)
    for arm in "xyz":
        one.add_arm(arm)
    assert one.select([0.1, 0.2, 0.3]).arm in ("x", "y", "z")
    one.remove_arm("x")
    assert one.select([0.1, 0.2, 0.3], arms=["y"]).arm == "y"
    with pytest.raises(ValueError, match="finds no place"):
        one.add_arm("w")
    with pytest.raises(ValueError, match="must be None"):
        one.add_arm("w", [1.0])
    for places, why in (
        ([0, 99], "from 0 to 2"),
        ([-5, 1], "from 0 to 2"),
        ([0, 1.5], "whole numbers"),
        ([0, 2**32], "whole numbers"),
    ):
        with pytest.raises(ValueError, match=why):
            one.select(Slot(np.ones((2, DIM)), np.asarray(places)))


def test_rewards_keep_their_digits():
    one = OnlineBandit(make("lin-ucb"), normalize=True, learning="manual")
    rewards = 1e9 + np.arange(7)
    one.fit(contexts(0, 7), None, rewards)
    np.testing.assert_array_equal(one._state.observations.kept()[1], rewards)
    assert one._state.moments.deviation == pytest.approx(2.0)


def test_few_that_wait_do_not_hold_the_memory_of_many():
    one = bandit(learning="manual")
    decisions = one.select_many(contexts(0, 1000, ARMS))
    whole = one.health().pending_bytes
    one.observe_many([decision.id for decision in decisions[1:]], np.ones(999))
    assert one.health().pending_bytes < whole / 500
    assert one.explain(decisions[0].id).status == "pending"
    one.observe(decisions[0].id, 1.0)


def test_what_waits_holds_no_buffers_of_jax():
    """Each would keep kilobytes alive, which no count of bytes shows."""
    one = bandit(learning="manual")
    one.select(contexts())
    one.select_many(contexts(0, 3, ARMS))
    assert all(asked.rows.flags.owndata for asked in one._state.ledger.pending.values())


def test_a_tie_is_no_exploration():
    one = bandit()
    one.select(np.ones((ARMS, DIM)))
    assert one.health().explored == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda one: one.fit(None, ["a"], [1.0]),
        lambda one: one.fit([[1.0]], ["a", "b"], [1.0]),
        lambda one: one.expire("1h"),
        lambda one: one.add_arm("q", {"x": 1}),
        lambda one: one.observe_many(None, [1.0]),
        lambda one: one.observe_many("abc", [1.0]),
        lambda one: one.select_many([["a"]]),
        lambda one: one.warm_up(arms=-3),
        lambda one: one.select({"x": 1}),
        lambda one: one.select([1.0], arms="ab"),
    ],
)
def test_other_bad_calls_are_refused_in_words(call):
    one = bandit()
    one.add_arm("a", [1.0, 2.0])
    with pytest.raises(ValueError, match="must be"):
        call(one)


def test_nothing_is_compiled_in_the_steady_state():
    one = bandit(schedule="10")
    one.warm_up(arms=ARMS, decisions=8)
    compiled = one.health().compiled
    play(one, 40)
    one.select_many(contexts(0, 8, ARMS))
    assert one.health().compiled == compiled


@pytest.mark.parametrize("counted", [False, True])
def test_warming_up_compiles_batches_and_arms_by_id_too(counted):
    one = OnlineBandit(make("lin-ucb"), count_pending=counted, learning="manual")
    for arm in range(5):
        one.add_arm(arm, [float(arm), 0.0])
    one.warm_up(decisions=2)
    compiled = one.health().compiled
    one.select([1.0])
    one.select(contexts(0, 5))
    one.select_many([[1.0], [2.0]])
    one.select_many(contexts(0, 2, 5))
    assert one.health().compiled == compiled


def test_it_starts_warm_from_a_log():
    rows = contexts(5, 60, ARMS)
    arms = np.random.default_rng(0).integers(ARMS, size=60)
    played = rows[np.arange(60), arms]
    one, other = bandit(), bandit()
    assert one.fit(rows, arms, played[:, 0]).promoted
    other.fit(played, None, played[:, 0])
    np.testing.assert_array_equal(one.select(rows[0]).score, other.select(rows[0]).score)
    assert one.health().observed == 60
    named = bandit()
    named.add_arm("a", [1.0])
    named.add_arm("b", [0.0])
    named.fit(rows[:, 0, :2], ["a", "b"] * 30, played[:, 0])
    for call, why in (
        (lambda: one.fit(rows, arms + 1, played[:, 0]), "from 0 to 3"),
        (lambda: one.fit(rows, arms[:5], played[:, 0]), "as many as rewards"),
        (lambda: one.fit(played, None, played[:5, 0]), "60 numbers"),
        (lambda: named.fit(rows[:, 0, :2], ["c"] * 60, played[:, 0]), "not there"),
    ):
        with pytest.raises(ValueError, match=why):
            call()


def test_a_window_forgets_what_is_older():
    """After learning, a bandit with a window believes of Z what one believes that saw nothing but the window."""
    one, fresh = bandit(window=20, learning="manual"), bandit(window=20, learning="manual")
    play(one, 50, seed=1)
    play(one, 20, seed=2)
    contexts, rewards = one._state.observations.kept()
    assert len(rewards) == 20
    fresh.fit(contexts, None, rewards)
    one.learn()
    for a, b in zip(jax.tree.leaves(one._state.belief), jax.tree.leaves(fresh._state.belief), strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.health().history_bytes < 20_000


def test_learning_twice_with_a_window_does_not_unlearn():
    once = OnlineBandit(make(method="gradient-descent"), window=20, learning="manual")
    play(once, 25)
    once.learn()
    before = [np.asarray(leaf) for leaf in jax.tree.leaves(once._state.belief)]
    once.learn()
    for a, b in zip(before, jax.tree.leaves(once._state.belief), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_world_that_turns_around_is_followed_only_with_a_window():
    def after_the_turn(window):
        one = OnlineBandit(make("lin-ucb"), schedule="20", window=window)
        for sign, seed in ((1, 0), (-1, 1)):
            right = 0
            for row in contexts(seed, 300, ARMS):
                decision = one.select(row)
                one.observe(decision.id, sign * float(row[decision.position, 0]))
                right += decision.position == int(np.argmax(sign * row[:, 0]))
        return right

    assert after_the_turn(60) > 200
    assert after_the_turn(None) < 160  # the control: without a window it goes on believing the old world


def test_rewards_of_any_scale_are_learned_and_told_in_that_scale():
    def best_arms(scale, shift, normalize):
        one = OnlineBandit(make(steps=100), schedule="20", normalize=normalize)
        right = 0
        for row in contexts(0, 300, ARMS):
            decision = one.select(row)
            one.observe(decision.id, scale * float(row[decision.position, 0]) + shift)
            right += decision.position == int(np.argmax(row[:, 0]))
        return right, decision

    large, decision = best_arms(1e4, -5e5, True)
    assert large > 180
    assert (abs(decision.mean + 5e5) < 1e5).all()
    small, _ = best_arms(1e-4, 0, True)
    assert small > 180
    raw, _ = best_arms(1e-4, 0, False)
    assert raw < 150  # the control: unscaled, such rewards drown in exploration


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if not ALGORITHMS[name].sees_expected])
def test_a_loaded_bandit_goes_on_bit_for_bit(name, tmp_path):
    one = OnlineBandit(make(name), schedule="8", seed=3)
    play(one, 20)
    waiting = one.select(contexts(9))
    other = OnlineBandit.load(one.save(tmp_path / "saved"))
    for each in (one, other):
        each.observe(waiting.id, 0.5)
    np.testing.assert_array_equal(play(one, 15, seed=1), play(other, 15, seed=1))
    assert fingerprint(one)[1] == fingerprint(other)[1]
    assert one.select(contexts()).id == other.select(contexts()).id


def test_all_settings_and_arms_survive(tmp_path):
    settings = {"window": 30, "normalize": True, "count_pending": True, "schedule": "5:10,20", "seed": 11}
    one = OnlineBandit(make("lin-ucb"), **settings)
    one.add_arm("a", [0.0, 1.0])
    one.add_arm(2, [1.0, 0.0])
    for index in range(40):
        one.observe(one.select([0.1 * index]).id, 3.0 * index)
    one.select_many([[1.0], [2.0]])
    other = OnlineBandit.load(one.save(tmp_path / "saved"))
    assert {name: other.settings[name] for name in settings} == settings
    a, b = one.select([0.5]), other.select([0.5])
    np.testing.assert_array_equal(a.score, b.score)
    assert (a.arm, a.id) == (b.arm, b.id)
    same = {"loss": 0.0, "inverse_drift": 0.0}  # NaN is not equal to itself
    assert one.health()._replace(**same) == other.health()._replace(**same)


def test_saving_again_replaces_and_a_failed_save_leaves_the_old(tmp_path, monkeypatch):
    one = bandit()
    play(one, 3)
    folder = one.save(tmp_path / "saved")
    play(one, 3, seed=1)
    monkeypatch.setattr("neuralucb.online.keeper.step", lambda name: 1 / 0 if name == "snapshot manifest" else None)
    with pytest.raises(ZeroDivisionError):
        one.save(folder)
    monkeypatch.undo()
    assert OnlineBandit.load(folder).health().observed == 3
    one.save(folder)
    assert OnlineBandit.load(folder).health().observed == 6
    assert len(list(folder.glob("snapshot-*"))) == 3


def test_what_cannot_be_loaded_says_so(tmp_path):
    with pytest.raises(StorageError, match="no snapshot"):
        OnlineBandit.load(tmp_path)
    folder = bandit().save(tmp_path / "saved")
    manifest = next(folder.glob("*.manifest.json"))
    text = manifest.read_text()
    manifest.write_text(text.replace('"format": 1', '"format": 2'))
    with pytest.raises(StorageError, match="format 2.*update"):
        OnlineBandit.load(folder)
    manifest.write_text(text)
    with pytest.raises(ValueError, match="policy"):
        OnlineBandit.load(folder, make("lin-ucb"))
    arrays = next(folder.glob("*.safetensors"))
    arrays.write_bytes(arrays.read_bytes()[:-1])
    with pytest.raises(StorageError, match="damaged"):
        OnlineBandit.load(folder)
    arrays.unlink()
    with pytest.raises(StorageError, match="cannot be read"):
        OnlineBandit.load(folder)


@pytest.mark.parametrize("damage", ["arrays", "pending", "settings"])
def test_what_has_the_right_checksum_but_makes_no_sense_is_one_error_too(damage, tmp_path):
    one = OnlineBandit(make("lin-ucb"))
    one.select(contexts())
    one.save(tmp_path / "whole")
    (whole,) = tmp_path.glob("whole/*.safetensors")
    (state,) = tmp_path.glob("whole/*.state.json")
    fields = json.loads(state.read_text())
    if damage == "settings":
        del fields["settings"]["normalize"]
    else:
        fields["state"]["pending"]["lengths"] = []
    data = {
        whole.name: b"\xff" * 99 if damage == "arrays" else whole.read_bytes(),
        state.name: json.dumps(fields).encode(),
    }
    parts = {name: {"sha256": hashlib.sha256(part).hexdigest(), "bytes": len(part)} for name, part in data.items()}
    manifest = {"format": 1, "note": 0, "parts": parts}
    seal = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    for name, part in data.items():
        (whole.parent / name).write_bytes(part)
    next(whole.parent.glob("*.manifest.json")).write_text(json.dumps({"manifest": manifest, "sha256": seal}))
    for again in (lambda: OnlineBandit.load(whole.parent), lambda: OnlineBandit(make("lin-ucb"), journal=whole.parent)):
        with pytest.raises(StorageError, match="cannot|does not hold"):
            again()


def mutated(data, generator):
    data = bytearray(data)
    kind = generator.integers(4)
    if kind == 0:
        data[generator.integers(len(data))] ^= 1 << generator.integers(8)
    elif kind == 1:
        del data[generator.integers(len(data)) :]
    elif kind == 2:
        data += bytes(generator.integers(256, size=3).tolist())
    else:
        at = generator.integers(len(data))
        data[at : at + 8] = b"\xff" * 8
    return bytes(data)


def check_mutations(tmp_path, count):
    one = bandit()
    play(one, 5)
    folder = one.save(tmp_path / "saved")
    _, right = snapshots.read(folder)
    files = {path: path.read_bytes() for path in sorted(folder.iterdir())}
    generator, refused = np.random.default_rng(0), 0
    for index in range(count):
        path = list(files)[index % len(files)]
        path.write_bytes(mutated(files[path], generator))
        try:
            _, read = snapshots.read(folder)
        except StorageError:
            refused += 1
        else:
            assert read.fields == right.fields or repr(read.fields) == repr(right.fields)
            assert all(np.array_equal(read.arrays[name], right.arrays[name]) for name in right.arrays)
        path.write_bytes(files[path])
    assert refused > 0.8 * count


def test_a_mutated_snapshot_is_refused_or_right(tmp_path):
    check_mutations(tmp_path, 600)


@pytest.mark.slow
def test_ten_thousand_mutated_snapshots_are_refused_or_right(tmp_path):
    check_mutations(tmp_path, 10_000)


def test_an_explanation_and_the_health_can_be_read():
    one = OnlineBandit(make(design="full"), schedule="10")
    decision = one.select(contexts())
    why = one.explain(decision.id)
    assert (why.status, why.reward, why.decision.arm) == ("pending", None, decision.arm)
    assert why.explored == (decision.position != int(np.argmax(decision.mean)))
    assert decision.id in str(why)
    assert len(str(why).splitlines()) == 2 + ARMS
    one.observe(decision.id, 2.0)
    assert one.explain(decision.id).reward == 2.0
    with pytest.raises(ValueError, match="was never made"):
        one.explain(f"{one.name}-12")
    play(one, 30)
    health = one.health()
    assert health.inverse_drift < 1e-10
    assert health.smallest_variance > 0
    assert 0 <= health.explored <= 1
    assert health.belief_bytes > 0
    assert "pending" in str(health)


def test_a_drifting_inverse_is_seen():
    one = OnlineBandit(make(design="full"), schedule="10")
    play(one, 10)
    z = one._state.belief.z
    one._state.belief = one._state.belief._replace(z=z._replace(inverse=1.01 * np.asarray(z.inverse)))
    assert one.health().inverse_drift > 1e-4


def check_own_network(network):
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    train = sgd(step_size=0.05, steps=50, batch_size=16, pull=1e-3)
    mine = policy(neural(network, diagonal(shapes, ridge=1.0), train), ucb(constant(0.1)))
    one = OnlineBandit(mine, schedule="20", example=np.zeros(DIM))
    play(one, 60)
    assert one.health().learned == 3
    late = contexts(3, 50, ARMS)
    right = sum(one.select(row).position == int(np.argmax(row[:, 0])) for row in late)
    assert right > 30


def test_a_network_of_flax():
    nn = pytest.importorskip("flax.linen")

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(1)(nn.relu(nn.Dense(16)(x)))[0]

    net = Net()
    check_own_network(
        from_functions(lambda key: net.init(key, np.zeros(DIM, np.float32)), net.apply, example=np.zeros(DIM, "f"))
    )


def test_a_network_of_equinox():
    eqx = pytest.importorskip("equinox")

    def init(key):
        return eqx.filter(eqx.nn.MLP(DIM, "scalar", 16, 1, key=key), eqx.is_array)

    _, static = eqx.partition(eqx.nn.MLP(DIM, "scalar", 16, 1, key=jax.random.key(0)), eqx.is_array)
    check_own_network(
        from_functions(init, lambda params, x: eqx.combine(params, static)(x), example=np.zeros(DIM, np.float32))
    )


def test_a_network_must_give_one_number():
    with pytest.raises(ValueError, match="one number"):
        from_functions(lambda key: np.ones(2), lambda params, x: params * x, example=np.zeros(2, np.float32))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"learning": "often"}, "learning must be one of"),
        ({"schedule": "never"}, "schedule must be"),
        ({"window": 0}, "window"),
        ({"normalize": "no"}, "normalize must be True or False, got 'no'"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"schedule": "100!"}, "must not forget"),
        ({"sync": "often"}, "sync must be one of"),
        ({"journal": 5}, "journal must be a folder's path, got 5"),
    ],
)
def test_bad_settings_are_refused(settings, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=why):
        OnlineBandit(make(), **settings)


def test_what_is_no_policy_is_refused():
    with pytest.raises(ValueError, match="policy must be one that build made, or your own Policy, got 'lin-ucb'"):
        OnlineBandit("lin-ucb")


def test_numbers_of_numpy_are_numbers():
    one = OnlineBandit(make("lin-ucb"), floor=np.float32(0.5), seed=np.int64(3))
    assert one.expire(np.int64(0)) == 0


def test_features_of_an_arm_are_a_copy():
    one = OnlineBandit(make("lin-ucb"))
    features = np.ones(2, np.float32)
    one.add_arm("a", features)
    before = one.select(np.ones(DIM - 2)).width
    features[:] = 50
    np.testing.assert_array_equal(one.select(np.ones(DIM - 2)).width, before)


@pytest.mark.parametrize("count", [3, 7, 13])
def test_equal_rewards_have_no_scale_though_they_are_rounded(count):
    one = OnlineBandit(make("lin-ucb"), normalize=True, learning="manual")
    ids = [one.select(np.ones((2, DIM))).id for _ in range(count)]
    one.observe_many(ids, [0.1] * count)
    assert one._state.moments.deviation == 1


def test_a_policy_of_ones_own_needs_an_example():
    with pytest.raises(ValueError, match="example"):
        OnlineBandit(make()._replace(origin=None))
