"""Estimates from whole logs: against the truth, and where they must miss it."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import InputError, build
from neuralucb.evaluation import FROZEN, evaluate
from neuralucb.logs import convert, open_log, recorded, write_log
from neuralucb.logs.batches import shape_of
from neuralucb.logs.warm_start import learn_from
from neuralucb.rules import floor
from tests.evaluation.worlds import (
    ARMS,
    DIM,
    GRID,
    LEVEL,
    MANY,
    POLICY,
    REPETITIONS,
    TARGET,
    TRUTH,
    coverage,
    in_memory,
    is_covered,
    softmax,
    true_value,
    world,
)


@pytest.mark.slow
def test_every_estimator_covers_the_truth_as_often_as_it_says_and_wrong_propensities_do_not():
    truth = true_value()

    def repeat(lie):
        made = []
        for seed in range(MANY):
            log = in_memory(world(500, seed, missing=0.1, lie=lie))
            made.append(evaluate(POLICY, (), log, level=LEVEL, methods=FROZEN).estimates)
        return coverage(made, truth)

    share, bias = repeat(lambda p: p)
    assert is_covered(share, MANY).all(), dict(zip(FROZEN, share, strict=True))
    assert (bias < 4).all(), dict(zip(FROZEN, bias, strict=True))
    share, _ = repeat(lambda p: np.full_like(p, 1 / ARMS))  # the control: propensities that are not true
    divided = [FROZEN.index(name) for name in ("ips", "snips")]
    assert not is_covered(share, MANY)[divided].any()


def test_the_doubly_robust_estimator_survives_a_wrong_model_but_not_wrong_propensities_too():
    methods = ("direct", "doubly-robust", "switch")

    def repeat(lie):
        made = []
        for seed in range(REPETITIONS):
            log = in_memory(world(500, seed, bend=1.5, lie=lie))
            made.append(evaluate(POLICY, (), log, level=LEVEL, methods=methods, switch=1e9).estimates)
            assert made[-1][1].value == made[-1][2].value  # no weight is that large
        return is_covered(coverage(made, true_value(bend=1.5))[0], REPETITIONS)

    assert repeat(lambda p: p).tolist() == [False, True, True]
    assert repeat(lambda p: np.full_like(p, 1 / ARMS)).tolist() == [False, False, False]  # the control


def test_ucb_with_a_floor_makes_a_log_that_tells_its_own_value():
    """The whole way: a UCB policy with a floor decides, its log is written, and a second policy is valued on it."""
    bandit = floor(build("lin-ucb", dim=DIM, exploration=0.1), 0.3)
    belief = bandit.init(jax.random.key(0))
    contexts = GRID[np.random.default_rng(0).integers(9, size=(3000, ARMS))]
    with jax.enable_x64(True):
        ask = jax.jit(jax.vmap(lambda key, x: bandit.select(key, belief, x)))
        choices = ask(jax.random.split(jax.random.key(1), 3000), contexts)
    mean = contexts @ TRUTH
    chunk = recorded(contexts, choices.arm, mean[np.arange(3000), choices.arm], np.asarray(choices.propensity))
    assert not np.isnan(chunk.propensity).any()
    truth = (softmax(contexts @ TARGET) * mean).sum(axis=1).mean()
    made = {one.method: one for one in evaluate(POLICY, (), in_memory(chunk)).estimates}
    for method in ("ips", "snips", "doubly-robust"):
        assert abs(made[method].value - truth) < 4 * made[method].error


@pytest.mark.parametrize("shared", [False, True])
def test_a_policy_learns_from_a_log_and_is_better_than_the_one_that_logged(tmp_path, shared):
    random = np.random.default_rng(0)
    slopes = random.normal(size=(ARMS, DIM))
    x = random.normal(size=(2000, DIM))
    contexts = x if shared else GRID[random.integers(9, size=(2000, ARMS))]
    mean = x @ slopes.T if shared else contexts @ TRUTH
    arm = random.integers(ARMS, size=2000)
    rewards = mean[np.arange(2000), arm] + 0.1 * random.normal(size=2000)
    rewards[::7] = np.nan
    write_log(tmp_path / "log.parquet", [recorded(contexts, arm, rewards, np.full((2000, ARMS), 1 / ARMS))])
    log = open_log(tmp_path / "log.parquet")
    bandit = build("lin-ucb", **shape_of(log), exploration=0.01)
    learned = learn_from(jax.random.key(0), bandit, log, end=1000)
    assert int(learned.history.seen) == int((~np.isnan(rewards[:1000])).sum()) == int(learned.belief.rounds)
    made = evaluate(bandit, learned.belief, log, begin=1000)
    assert made.without_reward + made.decisions == 1000
    best = mean[1000:].max(axis=1).mean()
    for one in made.estimates:
        assert abs(one.value - best) < 5 * one.error + 0.05 * best
    assert made.logged.high < made.estimates[1].low


def test_a_log_without_features_and_with_masks_is_evaluated(tmp_path):
    random = np.random.default_rng(0)
    able = random.random((500, ARMS)) < 0.7
    able[:, 0] = True
    p = able / able.sum(axis=1, keepdims=True)
    arm = (p.cumsum(axis=1) > random.random((500, 1))).argmax(axis=1)
    chunk = recorded(np.zeros((500, 0), np.float32), arm, (arm == 2).astype(float), p, available=able)
    write_log(tmp_path / "log.parquet", [chunk])
    convert(tmp_path / "log.parquet", tmp_path / "log.dsjson")
    for name in ("log.parquet", "log.dsjson"):
        log = open_log(tmp_path / name)
        bandit = build("lin-ucb", **shape_of(log), exploration=0.0)
        made = evaluate(bandit, learn_from(jax.random.key(0), bandit, log).belief, log)
        assert_allclose(made.estimates[1].value, able[:, 2].mean(), atol=4 * made.estimates[1].error)


def test_the_order_of_0_1_works_once_more_with_a_warning():
    log = in_memory(world(200, 3))
    with pytest.warns(DeprecationWarning, match=r"write evaluate\(policy, belief, log\)"):
        made = evaluate(log, POLICY, (), methods=("ips",))
    assert made == evaluate(POLICY, (), log, methods=("ips",))


def test_something_else_in_place_of_the_log_is_refused():
    with pytest.raises(InputError, match="log must be a Log, as `open_log` gives it, got a str"):
        evaluate(POLICY, (), "log.parquet")
