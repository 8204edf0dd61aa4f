"""Neural bandits beyond NeuralUCB against float64 transcriptions, or by identities that pin them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import Slot, build
from neuralucb.algorithms.shared_settings import PAPER
from neuralucb.estimators.committee import shares
from neuralucb.estimators.ee_net import pool
from neuralucb.estimators.features import exact_design, raw
from neuralucb.estimators.likelihood_matching import match_weights, weighted_design
from neuralucb.history import History
from tests.reference import bootstrapped_nn, ee_net, last_layer as reference, neural_bandit

DIM, ARMS, WIDTH, ROUNDS, EVERY = 6, 4, 8, 18, 3
STEP_SIZE, STEPS = 1e-3, 5
SETTINGS = {name: value for name, value in PAPER.items() if name != "design"} | {
    "width": WIDTH, "method": "gradient-descent", "steps": STEPS, "step_size": STEP_SIZE,
    "initialization": "gaussian", "network_precision": "float64", "regularization": 0.3,
}  # fmt: skip
pytestmark = pytest.mark.usefixtures("wide")


def stream():
    generator = np.random.default_rng(3)
    contexts = generator.normal(size=(ROUNDS, ARMS, DIM))
    direction = generator.normal(size=DIM)
    return contexts, np.cos(contexts @ direction) + 0.1 * generator.normal(size=(ROUNDS, 1))


def play(bandit, paper, belief, **training):
    """Round by round beside a transcription, a training every third round: yields contexts, choice and belief."""
    select, observe, learn = map(jax.jit, (bandit.select, bandit.observe, bandit.learn))
    contexts, rewards = stream()
    played, got = np.zeros((ROUNDS, DIM)), np.zeros(ROUNDS)
    for t in range(ROUNDS):
        choice = select(jax.random.key(t), belief, contexts[t])
        yield contexts[t], choice, belief
        arm = int(choice.arm)
        belief = observe(belief, contexts[t, arm], rewards[t, arm])
        paper.observe(contexts[t, arm], rewards[t, arm])
        played[t], got[t] = contexts[t, arm], rewards[t, arm]
        if t % EVERY == EVERY - 1:
            count = np.int32(t + 1)
            belief, info = learn(jax.random.key(t), belief, History(played, got, count, count))
            assert not info.diverged
            paper.learn(**training)


TRAINING = {"pull": 0.3 * WIDTH, "step_size": STEP_SIZE, "steps": STEPS}
COMMON = {"lam": 0.3, "factor": np.sqrt(WIDTH)}


@pytest.mark.parametrize(
    ("name", "transcription", "own"),
    [
        ("neural-linear", lambda start: reference.NeuralLinear(start, **COMMON), {}),
        ("bdqn", lambda start: reference.BDQN(start, **COMMON), {}),
        ("neural-lin-ucb", lambda start: reference.NeuralLinUCB(start, **COMMON), {}),
        (
            "neural-variance-lin-ucb",
            lambda start: reference.NeuralVarianceLinUCB(start, **COMMON, least=0.05),
            {"least_variance": 0.05},
        ),
        ("neural-linear-lm", lambda start: reference.NeuralLinearLM(start, **COMMON, memory=8), {"memory": 8}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_regression_on_the_last_layer_follows_its_transcription(name, transcription, own):
    bandit = build(name, dim=DIM, exploration=0.5, **SETTINGS, **own)
    belief = bandit.init(jax.random.key(0))
    paper = transcription(belief.initial)
    for contexts, choice, _ in play(bandit, paper, belief, **TRAINING):
        assert_allclose(choice.mean, paper.means(contexts), rtol=1e-6, atol=1e-9)
        assert_allclose(choice.width, paper.widths(contexts), rtol=1e-6)
        assert_allclose(choice.exploration, 0.5)
    assert np.ptp(np.asarray(choice.mean)) > 0.01


def test_arms_with_heads_have_a_regression_and_a_noise_of_their_own():
    settings = SETTINGS | {"encoding": "heads"}
    bandit = build("neural-linear", dim=DIM, shared_by=ARMS, exploration=1.0, **settings)
    belief = bandit.init(jax.random.key(0))
    contexts, rewards = stream()
    for t in range(12):
        belief = bandit.observe(belief, Slot(contexts[t, 0], np.int32(t % 2)), rewards[t, 0])
    x = contexts[15, 0]
    choice = bandit.select(jax.random.key(1), belief, Slot(np.tile(x, (ARMS, 1)), np.arange(ARMS, dtype=np.int32)))
    trunk = [np.asarray(matrix, np.float64) for matrix in belief.initial]
    for arm in range(ARMS):
        alone = reference.NeuralLinear([trunk[0], trunk[-1][arm]], **COMMON)
        for t in range(arm, 12 if arm < 2 else 0, 2):
            alone.observe(contexts[t, 0], rewards[t, 0])
        assert_allclose(choice.mean[arm], alone.means([x])[0], rtol=1e-6, atol=1e-9)
        assert_allclose(choice.width[arm], alone.widths([x])[0], rtol=1e-6)


def test_variances_stay_where_features_stay_and_are_found_again_where_they_turn():
    generator = np.random.default_rng(0)
    features = raw(5)
    design = exact_design(features, ridge=0.5)
    phi, other = (jnp.asarray(generator.normal(size=(12, 5))) for _ in range(2))
    variances = np.diag(phi @ np.linalg.inv(0.5 * np.eye(5) + phi.T @ phi) @ phi.T)
    assert_allclose(match_weights(design, phi, variances, np.int32(12)), 1, rtol=1e-9)
    turned = phi @ np.linalg.qr(generator.normal(size=(5, 5)))[0]
    assert_allclose(match_weights(design, turned, variances, np.int32(12)), 1, rtol=1e-9)

    def found(weights):
        z = weighted_design(design, other, weights, np.int32(12))
        return np.asarray(jax.vmap(design.width, (None, 0))(z, other)) ** 2

    wanted = found(jnp.asarray(generator.uniform(0.1, 5, size=12)))  # which some weights have
    before, after = (
        np.abs(np.log(found(weights) / wanted)).max()
        for weights in (jnp.ones(12), match_weights(design, other, wanted, np.int32(12)))
    )
    assert after < 0.2 * before


def test_the_committee_follows_its_transcription():
    bandit = build("neural-bandit", dim=DIM, epsilon=0.2, networks=3, learning_rate=0.7, **SETTINGS)
    belief = bandit.init(jax.random.key(0))
    paper = neural_bandit.Committee(
        [[leaf[which] for leaf in belief.initial] for which in range(3)], factor=np.sqrt(WIDTH), eta=0.7
    )
    sizes = [STEP_SIZE / 3, STEP_SIZE, STEP_SIZE * 3]
    training = {"pull": 0.3 * WIDTH, "steps": STEPS, "step_sizes": sizes}
    for contexts, choice, now in play(bandit, paper, belief, **training):
        assert_allclose(shares(now, 0.7), paper.shares(), rtol=1e-4)
        assert_allclose(choice.propensity, paper.chances(contexts, 0.2), rtol=1e-4)
        assert np.abs(paper.means(contexts) - np.asarray(choice.mean)).max(axis=1).min() < 1e-5
    assert np.ptp(paper.shares()) > 0.05


def test_ee_net_follows_its_transcription():
    bandit = build("ee-net", dim=DIM, memory=10, exploration=1.0, **SETTINGS)
    belief = bandit.init(jax.random.key(0))
    size = belief.gradients.shape[1]
    paper = ee_net.EENet(belief.initial, belief.explorer_initial, factor=np.sqrt(WIDTH), size=size, memory=10)
    for contexts, choice, _ in play(bandit, paper, belief, **TRAINING):
        assert_allclose(choice.mean, paper.means(contexts), rtol=1e-6, atol=1e-9)
        assert_allclose(choice.width, paper.extras(contexts), rtol=1e-6, atol=1e-9)
        assert_allclose(choice.score, paper.means(contexts) + paper.extras(contexts), rtol=1e-6, atol=1e-9)
    assert np.abs(np.asarray(choice.width)).max() > 1e-4


def test_a_gradient_is_pooled_by_means_of_equal_stretches():
    g = np.random.default_rng(0).normal(size=11)
    for size in (3, 4, 11):
        assert_allclose(pool(jnp.asarray(g), size), ee_net.pool(g, size), rtol=1e-12)


def perturbed(name, noise):
    """Play an algorithm that trains on perturbed rewards beside networks that are given the same."""
    members = 2
    bandit = build(name, dim=DIM, networks=members, **SETTINGS)
    belief = bandit.init(jax.random.key(0))
    learn = jax.jit(bandit.learn)
    contexts, rewards = (values[:, 0] for values in stream())
    keys = jax.random.split(belief.samples, members)
    for count in (6, ROUNDS):
        belief, _ = learn(jax.random.key(1), belief, History(contexts, rewards, np.int32(count), np.int32(count)))
        for which, key in enumerate(keys):
            drawn = noise(jax.random.fold_in(key, count), rewards[:count])
            initial = [leaf[which] for leaf in belief.initial]
            alone = bootstrapped_nn.BootstrappedNN([initial], factor=np.sqrt(WIDTH))
            for x, r in zip(contexts[:count], rewards[:count] + drawn[:count], strict=True):
                alone.observe(x, r, [True])
            yield [np.asarray(leaf[which]) for leaf in belief.params], alone


def test_npr_trains_on_rewards_with_normal_noise_that_is_new_at_every_training():
    for found, alone in perturbed(
        "neural-perturbed", lambda key, _: 0.5 * jax.random.normal(key, (ROUNDS,), "float64")
    ):
        alone.learn(**TRAINING)
        for ours, theirs in zip(found, alone.weights[0], strict=True):
            assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)


def test_perturbed_history_trains_on_rewards_and_pseudo_rewards_one_deviation_away():
    def noise(key, rewards):
        return rewards.std() * np.asarray(jax.random.rademacher(key, (1, ROUNDS), "float64"))[0]

    for found, alone in perturbed("neural-perturbed-history", noise):
        alone.learn(**TRAINING | {"pull": 0.3 * WIDTH / 2})
        for ours, theirs in zip(found, alone.weights[0], strict=True):
            assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)


def test_a_deep_ensemble_is_a_bootstrap_that_leaves_nothing_out():
    contexts, rewards = (values[:, 0] for values in stream())
    history, ends = History(contexts, rewards, np.int32(ROUNDS), np.int32(ROUNDS)), []
    for name, own in (("deep-ensemble", {}), ("bootstrapped-nn", {"inclusion": 1.0})):
        bandit = build(name, dim=DIM, networks=3, **SETTINGS, **own)
        belief, _ = bandit.learn(jax.random.key(1), bandit.init(jax.random.key(0)), history)
        ends.append((belief.params, bandit.select(jax.random.key(2), belief, stream()[0][0])))
    jax.tree.map(lambda one, other: assert_allclose(one, other, rtol=1e-12, atol=1e-12), *ends)
    first = ends[0][0][0]
    assert np.abs(first[0] - first[1]).max() > 0.1  # its members are others


def test_bayes_by_backprop_finds_the_normal_that_is_nearest_to_a_linear_models_posterior():
    """For f = wᵀx that is known: the posterior's mean, and the diagonal of its precision."""
    noise, lam, rows = 0.4, 2.0, 40
    generator = np.random.default_rng(1)
    x = generator.normal(size=(rows, 3)).astype(np.float32)
    r = (x @ [1.0, -0.5, 0.2] + noise * generator.normal(size=rows)).astype(np.float32)
    linear = (lambda key: np.zeros(3, np.float32) + 0 * jax.random.normal(key, (3,), "float32"), lambda w, x: w @ x)
    bandit = build(
        "bbq", dim=3, network=linear, units="given", exploration=noise, regularization=lam, steps=2000,
        step_size=0.02, batch_size=64, networks=200,
    )  # fmt: skip
    belief = bandit.init(jax.random.key(0))
    assert_allclose(np.std(belief.drawn, axis=0), noise / np.sqrt(lam), rtol=0.25)  # the prior, 200 draws
    for seed in range(3):
        belief, info = bandit.learn(jax.random.key(seed), belief, History(x, r, np.int32(rows), np.int32(rows)))
    precision = lam * np.eye(3) + x.T @ x
    deviations = noise / np.sqrt(np.diag(precision))
    assert_allclose(belief.params, np.linalg.solve(precision, x.T @ r), atol=0.5 * deviations.min())
    assert_allclose(np.exp(belief.log_deviations), deviations, rtol=0.1)
    assert_allclose(np.std(belief.drawn, axis=0), deviations, rtol=0.25)
    assert_allclose(info.loss, 0.5 * np.mean((x @ np.asarray(belief.params) - r) ** 2), rtol=1e-5)


def test_a_network_without_a_last_layer_is_refused_where_one_is_needed():
    plain = (lambda key: jax.random.normal(key, (3,), "float32"), lambda w, x: w @ x)
    for name in ("neural-linear", "neural-linear-lm", "bdqn", "neural-lin-ucb", "neural-variance-lin-ucb"):
        with pytest.raises(ValueError, match="must tell its last hidden layer"):
            build(name, dim=3, network=plain)


def test_rewards_in_another_unit_change_no_decision_of_ee_net():
    """Its second network learns what the first missed, before the first lesson in the caller's unit."""
    contexts, rewards = stream()
    bandit = build("ee-net", dim=DIM, width=WIDTH, steps=20, batch_size=8, memory=16)
    select, observe, learn = map(jax.jit, (bandit.select, bandit.observe, bandit.learn))
    arms = {}
    for unit in (1, 1024):
        belief, played, got = bandit.init(jax.random.key(0)), np.zeros((ROUNDS, DIM)), np.zeros(ROUNDS)
        for t in range(ROUNDS):
            arm = int(select(jax.random.key(t), belief, contexts[t]).arm)
            arms.setdefault(unit, []).append(arm)
            played[t], got[t] = contexts[t, arm], unit * rewards[t, arm]
            belief = observe(belief, played[t], got[t])
            if t % EVERY == EVERY - 1:
                belief, _ = learn(jax.random.key(t), belief, History(played, got, np.int32(t + 1), np.int32(t + 1)))
    assert arms[1] == arms[1024]
    assert len(set(arms[1][EVERY:])) > 1
