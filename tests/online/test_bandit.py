"""OnlineBandit end to end: decisions, late rewards, propensities, pending decisions, networks of the user."""

import threading
import time

import jax
import numpy as np
import pytest

from neuralucb import OnlineBandit
from neuralucb.algorithms.shared_settings import PAPER
from neuralucb.confidence import constant
from neuralucb.designs import diagonal
from neuralucb.estimators.neural import neural
from neuralucb.networks.network import from_functions
from neuralucb.policy import policy
from neuralucb.rules import ucb
from neuralucb.training import sgd
from tests.online.helpers import ARMS, DIM, bandit, contexts, linear, make, play


def test_a_decision_says_what_the_policy_believes_of_every_arm():
    one = bandit()
    rows = contexts()
    decision = one.select(rows)
    choice = make().select(jax.random.key(0), one.state.belief, rows)
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


def test_the_caller_may_change_an_array_after_passing_it():
    one, rows = bandit(), contexts()
    decision = one.select(rows)
    expected = rows[decision.position].copy()
    rows[:] = 99
    one.observe(decision.id, 1.0)
    np.testing.assert_array_equal(one.state.observations.in_window()[0][0], expected)
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
    for a, b in zip(jax.tree.leaves(late.state.belief), jax.tree.leaves(prompt.state.belief), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_deterministic_decision_has_no_propensity_and_a_floor_gives_the_exact_one():
    given = make(units="given")  # before the first lesson arms tie in learned units
    plain, floored = OnlineBandit(given), OnlineBandit(given, floor=0.2)
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


def test_pending_decisions_can_be_counted_so_that_a_batch_explores():
    rows = np.tile(contexts()[None], (12, 1, 1))
    eager = PAPER | {"design": "diagonal", "exploration": 10.0}
    for counted, arms in ((False, {1}), (True, {2, 3, 4})):
        one = OnlineBandit(make(**eager), count_pending=counted)
        assert len({decision.arm for decision in one.select_many(rows)}) in arms
        singles = OnlineBandit(make(**eager), count_pending=counted)
        assert len({singles.select(rows[0]).arm for _ in range(12)}) in arms


def test_counting_pending_ends_with_their_reward():
    one = OnlineBandit(make("lin-ucb"), count_pending=True, learning="manual")
    plain = OnlineBandit(make("lin-ucb"), learning="manual")
    rows = contexts()
    for decision in one.select_many(np.tile(rows[None], (5, 1, 1))):
        one.observe(decision.id, 1.0)
        plain.fit(rows[[decision.position]], None, [1.0])
    np.testing.assert_allclose(one.select(rows).score, plain.select(rows).score, rtol=1e-6)


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
        (lambda: named.fit(rows[:, 0, :2], ["c"] * 60, played[:, 0]), "was not found"),
    ):
        with pytest.raises(ValueError, match=why):
            call()


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


def check_threads(folder, seconds):
    bandit = OnlineBandit(linear(), journal=folder, sync="interval", learning="background", schedule="50")
    bandit.warm_up(arms=ARMS)
    ids, rewards, errors = [[] for _ in range(8)], [0] * 8, []
    stop = time.monotonic() + seconds

    def work(me):
        generator = np.random.default_rng(me)
        try:
            while time.monotonic() < stop:
                decision = bandit.select(generator.normal(size=(ARMS, DIM)))
                ids[me].append(decision.id)
                if generator.random() < 0.8:
                    bandit.observe(decision.id, float(me))
                    rewards[me] += 1
        except Exception as problem:
            errors.append(problem)

    threads = [threading.Thread(target=work, args=(me,)) for me in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bandit.close()
    assert not errors, errors
    every = [decision for mine in ids for decision in mine]
    assert len(set(every)) == len(every)
    with OnlineBandit(linear(), journal=folder, schedule="50") as again:
        for one in (bandit, again):
            health = one.health()
            assert health.decisions == len(every)
            assert health.observed == sum(rewards)
            assert health.pending == len(every) - sum(rewards)
            counts = np.bincount(one.state.observations.in_window()[1].astype(int), minlength=8)
            assert counts.tolist() == rewards
    return len(every)


def test_threads_lose_and_duplicate_nothing(tmp_path):
    assert check_threads(tmp_path / "journal", 2) > 100


@pytest.mark.slow
def test_eight_threads_for_a_minute_lose_and_duplicate_nothing(tmp_path):
    check_threads(tmp_path / "journal", 60)
