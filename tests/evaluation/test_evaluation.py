"""Off-policy evaluation: against the truth, against formulas worked out by hand, and where it must refuse."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from neuralucb import build
from neuralucb.display.evaluation import report
from neuralucb.evaluation import FROZEN, METHODS, Rounds, Sums, add, estimates_of, evaluate, overlap_of, replay
from neuralucb.logs import Log, convert, open_log, recorded, write_log
from neuralucb.logs.batches import batches, shape_of
from neuralucb.logs.warm_start import learn_from
from neuralucb.policy import Choice, Info, Policy, check_vector, guard
from neuralucb.rules import draw_arm, floor
from neuralucb.schedules import read_schedule

ARMS, DIM, LEVEL = 3, 2, 0.9
TRUTH = np.asarray([0.8, -0.5])
TARGET = np.asarray([1.5, 0.5])


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def fixed_policy():
    """Arms with probabilities softmax(x · TARGET), whatever it has seen."""

    def select(key, belief, contexts, available):
        score = jnp.where(available, contexts @ jnp.asarray(TARGET, jnp.float32), -jnp.inf)
        propensity = jax.nn.softmax(score)
        zero = jnp.zeros_like(score)
        return Choice(draw_arm(key, propensity), score, zero, score, zero[0], propensity)

    keep = lambda belief, context, reward: belief  # noqa: E731
    return guard(
        Policy(lambda key: (), select, keep, lambda key, belief, history: (belief, Info.nothing())), check_vector(DIM)
    )


POLICY = fixed_policy()
GRID = np.asarray([[a, b] for a in (-1, 0, 1) for b in (-1, 0, 1)], np.float32)


def expected(contexts, bend=0.0):
    """Linear in the context, or bent: then no linear model is right."""
    return contexts @ TRUTH + bend * contexts[..., 0] * contexts[..., 1]


def world(count, seed, *, logging=0.7, bend=0.0, missing=0.0, lie=lambda p: p):
    """Contexts from a grid, rewards with noise, logged by a softmax policy; `lie` is what is written of its chances."""
    random = np.random.default_rng(seed)
    contexts = GRID[random.integers(len(GRID), size=(count, ARMS))]
    mean = expected(contexts, bend)
    p = 0.1 / ARMS + 0.9 * softmax(-logging * mean)
    arm = (p.cumsum(axis=1) > random.random((count, 1))).argmax(axis=1)
    reward = mean[np.arange(count), arm] + random.normal(size=count) * 0.5
    reward[random.random(count) < missing] = np.nan
    return recorded(contexts, arm, reward, lie(p))


def in_memory(*chunks):
    decisions = sum(len(chunk.line) for chunk in chunks)
    return Log("memory", chunks[-1].names, ARMS, decisions, lambda: iter(chunks))


def true_value(bend=0.0):
    """Of TARGET's policy, over all combinations of contexts."""
    arms = np.stack([each.ravel() for each in np.meshgrid(*[np.arange(len(GRID))] * ARMS)], axis=1)
    contexts = GRID[arms]
    return float((softmax(contexts @ TARGET) * expected(contexts, bend)).sum(axis=1).mean())


def coverage(estimates, truth):
    inside = np.asarray([[one.low <= truth <= one.high for one in row] for row in estimates])
    value = np.asarray([[one.value for one in row] for row in estimates])
    bias = np.abs(value.mean(axis=0) - truth) / (value.std(axis=0) / np.sqrt(len(value)))
    return inside.mean(axis=0), bias


def is_covered(share, repetitions):
    """Within four standard errors of the level."""
    return np.abs(share - LEVEL) <= 4 * np.sqrt(LEVEL * (1 - LEVEL) / repetitions)


REPETITIONS = 200
MANY = 1000
"""Where repeating is cheap: 200 seeds can be off by four standard errors, 1000 tell more."""


def test_every_estimator_covers_the_truth_as_often_as_it_says_and_wrong_propensities_do_not():
    truth = true_value()

    def repeat(lie):
        made = []
        for seed in range(MANY):
            log = in_memory(world(500, seed, missing=0.1, lie=lie))
            made.append(evaluate(log, POLICY, (), level=LEVEL, methods=FROZEN).estimates)
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
            made.append(evaluate(log, POLICY, (), level=LEVEL, methods=methods, switch=1e9).estimates)
            assert made[-1][1].value == made[-1][2].value  # no weight is that large
        return is_covered(coverage(made, true_value(bend=1.5))[0], REPETITIONS)

    assert repeat(lambda p: p).tolist() == [False, True, True]
    assert repeat(lambda p: np.full_like(p, 1 / ARMS)).tolist() == [False, False, False]  # the control


@pytest.mark.parametrize("missing", [0, 1, 7])
def test_no_decision_is_judged_by_a_model_that_has_seen_it(missing):
    """Rewards are noise, and features so many that a model explains the noise it has seen, but no other."""
    random = np.random.default_rng(0)
    contexts, arm, reward = (
        random.normal(size=(200, ARMS, 100)),
        random.integers(ARMS, size=200),
        random.normal(size=200),
    )
    reward[:missing] = np.nan
    bandit = build("uniform", dim=100)
    log = in_memory(recorded(contexts.astype(np.float32), arm, reward, np.full((200, ARMS), 1 / ARMS)))
    made = evaluate(log, bandit, bandit.init(jax.random.key(0)), methods=("doubly-robust",))
    assert made.estimates[0].error > made.logged.error


@pytest.mark.parametrize("own", [True, False])
def test_a_number_added_to_all_rewards_is_added_to_every_estimate(own):
    random = np.random.default_rng(0)
    contexts, arm = random.normal(size=(500, 10, DIM) if own else (500, DIM)), random.integers(9, size=500)
    noise, bandit = random.normal(size=500), build("uniform", dim=DIM, shared_by=None if own else 10)

    def values(added):
        chunk = recorded(contexts.astype(np.float32), arm, noise + added, np.full((500, 10), 0.1))
        log = Log("memory", chunk.names, 10, 500, lambda: iter([chunk]))
        methods = ("direct", "snips", "doubly-robust", "switch")
        made = evaluate(log, bandit, bandit.init(jax.random.key(0)), methods=methods)
        return np.asarray([[one.value, one.error] for one in made.estimates])

    here, there = values(0.0), values(1000.0)
    assert_allclose(there[:, 0], here[:, 0] + 1000, rtol=1e-7)  # probabilities are float32
    assert_allclose(there[:, 1], here[:, 1], rtol=1e-6)


def test_switch_is_as_uncertain_as_the_model_it_leaves_the_weights_to():
    log = in_memory(world(500, 0))
    direct, all_left, none_left, robust = (
        evaluate(log, POLICY, (), methods=(method,), switch=at).estimates[0]
        for method, at in (("direct", 1), ("switch", 0), ("switch", 1e9), ("doubly-robust", 1))
    )
    assert_allclose(all_left[1:4], direct[1:4], rtol=1e-9)
    assert robust.error <= none_left.error < 1.05 * robust.error

    made = [evaluate(in_memory(world(500, seed)), POLICY, (), level=LEVEL, methods=("switch",), switch=1.0).estimates
            for seed in range(REPETITIONS)]  # fmt: skip
    assert is_covered(coverage(made, true_value())[0], REPETITIONS).all()


def test_replay_covers_the_truth_for_a_policy_that_does_not_learn():
    truth, p = true_value(), np.asarray([0.2, 0.3, 0.5])

    def repeat(lie):
        made = []
        for seed in range(REPETITIONS):
            random = np.random.default_rng(seed)
            contexts = GRID[random.integers(len(GRID), size=(1000, ARMS))]
            arm = random.choice(ARMS, p=p, size=1000)
            reward = (contexts @ TRUTH)[np.arange(1000), arm] + random.normal(size=1000) * 0.5 + 0.5 * arm
            log = in_memory(recorded(contexts, arm, reward, np.tile(lie(p), (1000, 1))))
            end = replay(jax.random.key(seed), POLICY, log, schedule=read_schedule("100000"), level=LEVEL)
            made.append([end.estimate])
        return coverage(made, truth + 0.5)[0]

    assert is_covered(repeat(lambda p: p), REPETITIONS).all()
    assert not is_covered(repeat(lambda p: np.full_like(p, 1 / 3)), REPETITIONS).any()  # the control


def test_replay_counts_a_decision_as_often_as_it_stands_for():
    """Of rewards of 0, nine in ten were dropped from the log: those left stand for ten each."""
    random = np.random.default_rng(0)
    reward = (random.random(4000) < 0.5).astype(float)
    chunk = recorded(np.ones((4000, ARMS, DIM)), random.integers(ARMS, size=4000), reward, np.full((4000, ARMS), 1 / 3))
    thinned = chunk._replace(weight=np.where(reward == 0, 10.0, 1.0))
    even, heavy = (
        replay(jax.random.key(0), POLICY, in_memory(one), schedule=read_schedule("100000")).estimate
        for one in (chunk, thinned)
    )
    ips = evaluate(in_memory(thinned), POLICY, (), methods=("ips",)).estimates[0]
    assert abs(heavy.value - 1 / 11) < 4 * heavy.error
    assert abs(heavy.value - ips.value) < 4 * np.hypot(heavy.error, ips.error)
    assert abs(even.value - 1 / 11) > 4 * even.error  # the control


def test_replay_does_not_stop_in_silence_where_propensities_are_too_small():
    chunk = world(4000, 0, logging=0.0)._replace(propensity=np.full(4000, 0.05), probabilities=None)
    with pytest.raises(ValueError, match="accepted more than its propensities allow, 200 of 4000 decisions: they are"):
        replay(jax.random.key(0), POLICY, in_memory(chunk), schedule=read_schedule("100000"))


def test_replay_learns_along_the_log_as_the_policy_would_online():
    chunk = world(6000, 0, logging=0.0, lie=lambda p: np.full_like(p, 1 / ARMS))
    bandit = build("lin-ucb", dim=DIM)
    end = replay(jax.random.key(0), bandit, in_memory(chunk), schedule=read_schedule("50"))
    best = (GRID[np.stack(np.meshgrid(*[np.arange(9)] * 3), -1).reshape(-1, 3)] @ TRUTH).max(axis=1).mean()
    assert abs(end.accepted / end.decisions - 1 / ARMS) < 5 * np.sqrt(2 / 9 / 6000)
    assert end.estimate.value > 0.9 * best
    assert true_value() < 0.9 * best  # the control: a policy that does not learn stays below
    assert int(end.belief.rounds) == end.accepted


SMALL = Rounds(
    reward=np.asarray([1.0, 0.0, 1.0, 0.0]),
    propensity=np.asarray([0.5, 0.25, 0.2, 0.8]),
    arm=np.asarray([0, 1, 2, 0]),
    target=np.asarray([[0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.4, 0.3, 0.3]]),
    predicted=np.asarray([[0.5, 0.1, 0.2], [0.3, 0.4, 0.1], [0.1, 0.2, 0.7], [0.6, 0.5, 0.4]]),
    stands_for=np.ones(4),
)


def test_estimators_are_the_formulas_of_open_bandit_pipeline():
    """Worked out by hand: w = 1.2, 3.2, 3, 0.5; direct = 0.36, 0.36, 0.48, 0.51; w(r - r̂) = 0.6, -1.28, 0.9, -0.3."""
    sums = add(Sums.nothing(), SMALL, switch=3.1)
    made = {one.method: one for one in estimates_of(sums, FROZEN, level=0.95)}
    by_round = {
        "direct": [0.36, 0.36, 0.48, 0.51],
        "ips": [1.2, 0, 3, 0],
        "doubly-robust": [0.96, -0.92, 1.38, 0.21],
        "switch": [0.96, 0.36, 1.38, 0.21],
    }
    for method, values in by_round.items():
        assert_allclose(made[method].value, np.mean(values), rtol=1e-12)
        assert_allclose(made[method].error, np.std(values) / 2, rtol=1e-12)
    assert_allclose(made["snips"].value, 4.2 / 7.9, rtol=1e-12)
    residuals = np.asarray([1.2, 3.2, 3, 0.5]) * (SMALL.reward - 4.2 / 7.9)
    assert_allclose(made["snips"].error, np.sqrt((residuals**2).sum()) / 7.9, rtol=1e-12)
    assert_allclose(made["ips"].effective, 7.9**2 / (1.44 + 10.24 + 9 + 0.25), rtol=1e-12)
    assert_allclose(made["ips"].high - made["ips"].value, 1.959964 * made["ips"].error, rtol=1e-6)


def test_estimators_with_weights_are_weighted_means():
    """Worked out by hand from the values above, with s = 1, 2, 4, 1: Σs = 8, Σs² = 22."""
    sums = add(Sums.nothing(), SMALL._replace(stands_for=np.asarray([1.0, 2, 4, 1])), switch=3.1)
    made = {one.method: one for one in estimates_of(sums, FROZEN, level=0.95)}
    by_round = {
        "direct": ([0.36, 0.36, 0.48, 0.51], 3.51 / 8),
        "ips": ([1.2, 0, 3, 0], 13.2 / 8),
        "doubly-robust": ([0.96, -0.92, 1.38, 0.21], 4.85 / 8),
        "switch": ([0.96, 0.36, 1.38, 0.21], 7.41 / 8),
    }
    for method, (values, mean) in by_round.items():
        assert_allclose(made[method].value, mean, rtol=1e-12)
        squares = sum(s**2 * (value - mean) ** 2 for s, value in zip((1, 2, 4, 1), values, strict=True))
        assert_allclose(made[method].error, np.sqrt(squares) / 8, rtol=1e-12)
    ratio = 13.2 / 20.1  # Σsw = 1.2 + 6.4 + 12 + 0.5
    assert_allclose(made["snips"].value, ratio, rtol=1e-12)
    squares = (1.2 * (1 - ratio)) ** 2 + (6.4 * ratio) ** 2 + (12 * (1 - ratio)) ** 2 + (0.5 * ratio) ** 2
    assert_allclose(made["snips"].error, np.sqrt(squares) / 20.1, rtol=1e-12)
    assert_allclose(made["ips"].effective, 20.1**2 / (1.44 + 40.96 + 144 + 0.25), rtol=1e-12)
    assert_allclose(made["direct"].effective, 64 / 22, rtol=1e-12)


def test_sums_are_the_same_in_any_pieces_and_a_weight_of_two_is_two_decisions():
    whole = add(Sums.nothing(), SMALL, switch=10)
    halves = Sums.nothing()
    for part in (slice(0, 1), slice(1, 4)):
        halves = add(halves, Rounds(*(column[part] for column in SMALL)), switch=10)
    double = Rounds(*(np.concatenate([column, column]) for column in SMALL))
    heavy = SMALL._replace(stands_for=np.full(4, 2.0))
    for method in ("ips", "snips", "direct", "doubly-robust"):
        one, two = (estimates_of(sums, (method,), level=0.9)[0] for sums in (whole, halves))
        assert_allclose(one[1:], two[1:], rtol=1e-12)
        repeated, weighted = (
            estimates_of(add(Sums.nothing(), rounds, switch=10), (method,), level=0.9)[0] for rounds in (double, heavy)
        )
        assert_allclose([repeated.value, weighted.value], one.value, rtol=1e-12)
        assert_allclose(weighted.error, one.error, rtol=1e-12)  # four decisions, whatever they stand for


def test_wrong_propensities_and_little_overlap_are_told_in_words():
    honest = evaluate(in_memory(world(4000, 1)), POLICY, ()).overlap
    assert honest.words == ()
    assert abs(honest.mean_weight - 1) < 4 * honest.mean_weight_error
    lying = evaluate(in_memory(world(4000, 1, lie=lambda p: np.full_like(p, 1 / ARMS))), POLICY, ()).overlap
    assert any("must average 1" in word for word in lying.words)
    narrow = overlap_of(add(Sums.nothing(), SMALL._replace(propensity=np.asarray([0.001, 0.9, 0.9, 0.9])), switch=10))
    assert any("below 0.01" in word for word in narrow.words)
    even = Rounds(
        np.ones(60), np.full(60, 0.005), np.arange(60), np.full((60, 200), 0.005), np.zeros((60, 200)), np.ones(60)
    )
    assert overlap_of(add(Sums.nothing(), even, switch=10)).words == ()


def test_where_hardly_a_decision_agrees_no_interval_is_claimed_and_nobody_accused():
    target = np.tile([0.0, 1.0], (40, 1))
    arms = np.zeros(40, int)
    rounds = Rounds(np.ones(40), np.full(40, 0.5), arms, target, np.zeros((40, 2)), np.ones(40))
    for agree in (0, 1):
        arms[:agree] = 1
        sums = add(Sums.nothing(), rounds, switch=10)
        made = {one.method: one for one in estimates_of(sums, FROZEN, level=0.95)}
        assert all(np.isnan([made[name].low, made[name].error]).all() for name in FROZEN if name != "direct")
        assert made["ips"].value == 2 * agree / 40
        assert made["direct"].low == made["direct"].high == 0
        (word,) = overlap_of(sums).words
        assert word.startswith("little overlap")
        assert word.endswith("the log hardly ever took the policy's arms")
    (word,) = overlap_of(
        add(Sums.nothing(), rounds._replace(arm=np.ones(40, int), propensity=np.ones(40)), switch=10)
    ).words
    assert word.startswith("few decisions: the 40 logged decisions tell as much as 40")


def test_a_table_shows_errors_to_three_digits_and_says_what_is_not_known():
    rates = evaluate(in_memory(world(400, 1)), POLICY, (), methods=("ips",))
    assert_allclose([len(cell.partition(".")[2]) for cell in _cells_of(rates)], 4)
    small = rates._replace(logged=rates.logged._replace(error=0.00042))
    assert_allclose([len(cell.partition(".")[2]) for cell in _cells_of(small)], 6)
    (one,) = rates.estimates
    lost = rates._replace(estimates=(one._replace(low=np.nan, high=np.nan, error=np.nan),))
    assert "| not known |" in report([lost], title="a log")


def _cells_of(made):
    rows = [line.split(" | ") for line in report([made], title="a log").splitlines() if line.startswith("| ")]
    return [row[2] for row in (rows[2], rows[3])]


SURE = {"null": np.nan, "one": 1.0}


@pytest.mark.parametrize("written", SURE.values(), ids=SURE)
@pytest.mark.parametrize("which", [slice(None), slice(0, -5), slice(7, 8)], ids=["all", "nearly all", "one"])
def test_a_deterministic_decision_is_not_divided_by(written, which):
    chunk = world(200, 0)._replace(probabilities=None)
    chunk.propensity[which] = written
    line = chunk.line[which][0]
    log = in_memory(chunk)
    for method in ("ips", "snips", "doubly-robust", "switch"):
        with pytest.raises(ValueError, match=f"decision {line} was deterministic"):
            evaluate(log, POLICY, (), methods=(method,))
    with pytest.raises(ValueError, match=f"decision {line} was deterministic"):
        replay(jax.random.key(0), POLICY, log, schedule=read_schedule("50"))
    made = evaluate(log, POLICY, (), methods=("direct",))
    assert made.overlap is None
    assert (made.decisions, made.deterministic) == (200, 0)


@pytest.mark.parametrize("written", SURE.values(), ids=SURE)
def test_deterministic_decisions_are_left_out_and_counted_when_asked(written):
    chunk = world(600, 0, missing=0.1)._replace(probabilities=None)
    sure = np.arange(600) % 3 == 0
    seen = ~np.isnan(chunk.reward)
    spoiled = in_memory(chunk._replace(propensity=np.where(sure, written, chunk.propensity)))
    pure = in_memory(chunk._replace(reward=np.where(sure, np.nan, chunk.reward)))
    made, expected_ = (evaluate(log, POLICY, (), skip_deterministic=True) for log in (spoiled, pure))
    assert made.estimates == expected_.estimates
    assert (made.decisions, made.deterministic) == ((seen & ~sure).sum(), (seen & sure).sum())
    along, as_pure = (
        replay(jax.random.key(0), POLICY, log, schedule=read_schedule("50"), skip_deterministic=True)
        for log in (spoiled, pure)
    )
    assert along.estimate == as_pure.estimate
    assert along.deterministic == (seen & sure).sum()
    with pytest.raises(
        ValueError, match="no decision to evaluate with in this part: 69 have no reward, 531 were deterministic"
    ):
        evaluate(in_memory(chunk._replace(propensity=np.ones(600))), POLICY, (), skip_deterministic=True)


@pytest.mark.parametrize("written", SURE.values(), ids=SURE)
def test_a_decision_with_one_arm_has_a_propensity_of_1_and_can_be_used(written):
    able = np.asarray([[True, False, False], [True, True, True]] * 50)
    arm = np.asarray([0, 0, 0, 1, 0, 2] * 16 + [0, 0, 0, 1])
    chunk = recorded(
        np.ones((100, ARMS, DIM)), arm, arm.astype(float), able / able.sum(1, keepdims=True), available=able
    )
    chunk = chunk._replace(propensity=np.where(able.all(axis=1), 1 / 3, written), probabilities=None)
    assert evaluate(in_memory(chunk), POLICY, ()).deterministic == 0
    assert replay(jax.random.key(0), POLICY, in_memory(chunk), schedule=read_schedule("50")).decisions == 100


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
    made = {one.method: one for one in evaluate(in_memory(chunk), POLICY, ()).estimates}
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
    made = evaluate(log, bandit, learned.belief, begin=1000)
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
        made = evaluate(log, bandit, learn_from(jax.random.key(0), bandit, log).belief)
        assert_allclose(made.estimates[1].value, able[:, 2].mean(), atol=4 * made.estimates[1].error)


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


def test_the_command_leaves_a_table_and_a_figure(command, tmp_path):
    write_log(tmp_path / "log.parquet", [world(1000, 0)])
    code, out, _ = command("evaluate", "log.parquet", "--policy", "lin-ucb", "--policy", "uniform", "--out", "here")
    assert code == 0
    for word in (*METHODS, "lin-ucb", "uniform", "logged policy", "weights average"):
        assert word in out
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["evaluate-log.md", "evaluate-log.png"]


def test_the_command_prints_one_json_object_and_nothing_else(command, tmp_path):
    write_log(tmp_path / "log.parquet", [world(1000, 0)])
    code, out, err = command("evaluate", "log.parquet", "--policy", "uniform", "--methods", "ips,direct", "--json")
    record = json.loads(out)
    assert (code, err) == (0, "")
    assert [one["method"] for one in record["evaluations"][0]["estimates"]] == ["ips", "direct"]
    assert record["evaluations"][0]["decisions"] == 500
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


def test_without_replay_the_other_methods_are_still_told_unless_it_was_asked_for(command, tmp_path):
    chunk = world(400, 0)._replace(probabilities=None)
    chunk.propensity[0] = 1e-6  # in the half that is learned from; replay would accept one decision in a million
    write_log(tmp_path / "log.parquet", [chunk])
    code, out, _ = command("evaluate", "log.parquet", "--policy", "uniform", "--out", "here")
    table = (tmp_path / "here" / "evaluate-log.md").read_text(encoding="utf-8")
    assert code == 0
    assert "uniform: no replay: log.parquet: replay accepted" in " ".join(out.split())
    assert "| doubly-robust |" in table
    assert "| replay |" not in table
    code, _, err = command("evaluate", "log.parquet", "--policy", "uniform", "--methods", "ips,replay", "--out", "here")
    assert code == 2
    assert "replay accepted" in err


def test_the_table_says_what_replay_is_about(command, tmp_path):
    write_log(tmp_path / "log.parquet", [world(400, 0)])
    code, out, _ = command("evaluate", "log.parquet", "--policy", "uniform", "--methods", "ips,replay")
    text = " ".join(out.split())
    assert code == 0
    assert "learned from the first 50%, valued on the rest (replay: learned along all of it)" in text
    assert "replay learned along the whole log, starting from nothing, and accepted" in text
    assert "of 400 decisions" in text


def test_skip_bad_leaves_deterministic_decisions_out_and_tells_how_many(command, tmp_path):
    chunk = world(400, 0)._replace(probabilities=None)
    chunk.propensity[[7, *range(300, 310)]] = np.nan  # one in the half that only replay is about
    write_log(tmp_path / "log.parquet", [chunk])
    ask = ("evaluate", "log.parquet", "--policy", "uniform", "--methods", "ips,replay")
    code, _, err = command(*ask)
    assert code == 2
    assert "decision 301 was deterministic" in " ".join(err.split())
    code, out, _ = command(*ask, "--skip-bad", "--out", "here")
    assert code == 0
    assert "10 deterministic decisions were left out" in " ".join(out.split())
    assert "of 389 decisions; 11 deterministic decisions were left out" in " ".join(out.split())


def test_the_share_to_learn_from_is_of_the_decisions_that_can_be_used(command, tmp_path):
    write_log(tmp_path / "log.parquet", [world(400, 0)._replace(probabilities=None)])
    table = pq.read_table(tmp_path / "log.parquet")
    bad = [2.0] * 240 + table["propensity"].to_pylist()[240:]
    place = table.schema.get_field_index("propensity")
    pq.write_table(table.set_column(place, "propensity", [bad]), tmp_path / "log.parquet")
    ask = ("evaluate", "log.parquet", "--policy", "uniform", "--methods", "ips", "--skip-bad", "--json")
    code, out, _ = command(*ask)
    record = json.loads(out)
    assert code == 0
    assert (record["skipped"], record["evaluations"][0]["decisions"]) == (240, 80)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.parquet", "--policy", "lin-ucb"], "none.parquet cannot be read"),
        (["log.parquet", "--policy", "magic"], "'magic' is not known"),
        (["log.parquet", "--policy", "oracle"], "needs the expected rewards"),
        (["log.parquet", "--policy", "lin-ucb", "--set", "width=3"], "a setting of none of lin-ucb"),
        (["log.parquet", "--policy", "lin-ucb", "--methods", "guess"], "--methods must be among direct"),
        (["log.parquet", "--policy", "lin-ucb", "--methods", ""], "--methods must be all or among direct"),
        (["log.parquet", "--policy", "lin-ucb", "--switch", "nan"], "switch must be a weight, at least 0, got nan"),
        (["log.parquet", "--policy", "lin-ucb", "--switch=-1"], "switch must be a weight, at least 0, got -1"),
        (["log.parquet", "--policy", "lin-ucb", "--train", "1"], "train must be at least 0 and below 1"),
        (["log.parquet", "--policy", "lin-ucb", "--level", "95"], "level must be above 0 and below 1"),
        (["log.parquet", "--policy", "lin-ucb", "--seed", "99999999999999999999"], "Invalid value for '--seed'"),
        (["sure.parquet", "--policy", "lin-ucb"], "was deterministic"),
        (["ones.parquet", "--policy", "lin-ucb", "--methods", "replay"], "was deterministic"),
    ],
)
def test_bad_input_is_a_short_message(command, tmp_path, arguments, message):
    write_log(tmp_path / "log.parquet", [world(100, 0)])
    write_log(tmp_path / "sure.parquet", [world(100, 0)._replace(propensity=np.full(100, np.nan))])
    ones = world(100, 0)._replace(propensity=np.ones(100), probabilities=None)
    write_log(tmp_path / "ones.parquet", [ones])
    code, out, err = command("evaluate", *arguments)
    assert code == 2
    assert message in " ".join(err.split())
    assert "Traceback" not in out + err
