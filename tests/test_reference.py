"""The library against the transcriptions, round by round: same arms, U, Z, log det, θ and γ_t."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import build
from neuralucb.algorithms.shared_settings import PAPER
from neuralucb.designs import diagonal
from neuralucb.history import History
from tests.reference import bootstrapped_nn, glm_ucb, kernel_ucb, lin_ucb, neural_ts, neural_ucb, neural_ucb0, square_cb

DIM, ARMS, WIDTH, ROUNDS = 6, 4, 8, 30
STEP_SIZE, STEPS = 1e-3, 5
pytestmark = pytest.mark.usefixtures("wide")


def stream(dtype):
    """Contexts and noise, the same in both precisions up to rounding."""
    generator = np.random.default_rng(3)
    contexts = generator.normal(size=(ROUNDS, ARMS, DIM)).astype(np.float32).astype(dtype)
    direction = generator.normal(size=DIM)
    rewards = np.cos(contexts @ direction) + 0.1 * generator.normal(size=(ROUNDS, 1))
    return contexts, rewards.astype(np.float32).astype(dtype)


def explicit_z(belief, design):
    """Z as a matrix, from either kind of design."""
    if design == "full":
        return np.linalg.inv(np.asarray(belief.z.inverse, np.float64))
    return np.diag(1 / np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in belief.z]))


def log_det(belief, design, regularization):
    if design == "full":
        return belief.z.log_det
    return diagonal(belief.params, ridge=regularization, dtype=belief.z[0].dtype).log_det(belief.z)


def play(precision, tolerance, *, design, depth, regularization, confidence="constant", **other):
    settings = PAPER | {
        "width": WIDTH, "depth": depth, "design": design, "regularization": regularization, "confidence": confidence,
        "step_size": STEP_SIZE, "steps": STEPS, "method": "gradient-descent", "exploration": 0.5,
        "network_precision": precision, "design_precision": "float64" if design == "full" else precision, **other,
    }  # fmt: skip
    bandit = build("neural-ucb", dim=DIM, **settings)
    select, observe, learn = map(jax.jit, (bandit.select, bandit.observe, bandit.learn))
    belief = bandit.init(jax.random.key(0))
    factor = np.sqrt(WIDTH) if other.get("scaling", "tangent") == "tangent" else 1.0
    pull = factor**2 * regularization
    double = (lambda x: np.concatenate([x, x], axis=-1) / np.sqrt(2)) if other.get("duplicate") else (lambda x: x)
    paper = neural_ucb.NeuralUCB(
        belief.initial, regularization=regularization, factor=factor, diagonal=design == "diagonal"
    )
    contexts, rewards = stream(precision)
    played, got = np.zeros((ROUNDS, DIM), precision), np.zeros(ROUNDS, precision)
    for t in range(ROUNDS):
        scale = 0.5
        if confidence == "theoretical":
            scale = neural_ucb.gamma(
                t, paper.log_det(), m=WIDTH, L=depth,
                lam=regularization, nu=1.0, delta=0.1, S=1.0, eta=STEP_SIZE, J=STEPS,
            )  # fmt: skip
        choice = select(jax.random.key(t), belief, contexts[t])
        upper = paper.upper(double(contexts[t].astype(np.float64)), scale)
        assert_allclose(choice.exploration, scale, rtol=tolerance)
        assert_allclose(choice.score, upper, rtol=tolerance, atol=tolerance * np.abs(upper).max())
        arm = int(choice.arm)
        assert arm == upper.argmax()
        belief = observe(belief, contexts[t, arm], rewards[t, arm])
        paper.observe(double(contexts[t, arm].astype(np.float64)), float(rewards[t, arm]))
        played[t], got[t] = contexts[t, arm], rewards[t, arm]
        belief, info = learn(jax.random.key(t), belief, History(played, got, np.int32(t + 1), np.int32(t + 1)))
        paper.learn(pull=pull, step_size=STEP_SIZE, steps=STEPS, warm=other.get("start") == "warm")
        assert not info.diverged
        for ours, theirs in zip(belief.params, paper.weights, strict=True):
            assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * np.abs(theirs).max())
        assert_allclose(explicit_z(belief, design), paper.Z, rtol=tolerance, atol=tolerance * np.abs(paper.Z).max())
        assert_allclose(log_det(belief, design, regularization), paper.log_det(), rtol=tolerance)


@pytest.mark.parametrize("regularization", [1.0, 1e-2, 1e-5])
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("design", ["full", "diagonal"])
def test_neural_ucb_follows_algorithm_1_in_float64(design, depth, regularization):
    play("float64", 1e-6, design=design, depth=depth, regularization=regularization)


@pytest.mark.parametrize("regularization", [1.0, 1e-2, 1e-5])
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("design", ["full", "diagonal"])
def test_neural_ucb_follows_algorithm_1_in_float32(design, depth, regularization):
    play("float32", 1e-3, design=design, depth=depth, regularization=regularization)


@pytest.mark.parametrize(
    "variant",
    [
        {"confidence": "theoretical"},
        {"initialization": "paper"},
        {"initialization": "paper", "duplicate": True},
        {"initialization": "gaussian", "start": "warm"},
        {"initialization": "gaussian", "scaling": "standard"},
        {"initialization": "symmetric", "scaling": "standard", "duplicate": True},
    ],
    ids=lambda variant: "-".join(f"{value}" for value in variant.values()),
)
def test_every_variant_follows_the_transcription(variant):
    play("float64", 1e-6, design="full", depth=3, regularization=0.1, **variant)


def test_lin_ucb_follows_the_transcription():
    bandit = build("lin-ucb", dim=DIM, exploration=0.7, regularization=0.3)
    select, observe = jax.jit(bandit.select), jax.jit(bandit.observe)
    belief, paper = bandit.init(jax.random.key(0)), lin_ucb.LinUCB(DIM, regularization=0.3)
    contexts, rewards = stream("float64")
    for t in range(ROUNDS):
        choice = select(jax.random.key(t), belief, contexts[t])
        upper = paper.upper(contexts[t], 0.7)
        assert_allclose(choice.score, upper, rtol=1e-6)
        arm = int(choice.arm)
        assert t == 0 or arm == upper.argmax()
        belief = observe(belief, contexts[t, arm], rewards[t, arm])
        paper.observe(contexts[t, arm], rewards[t, arm])


TRAINED = {name: value for name, value in PAPER.items() if name != "design"} | {
    "width": WIDTH, "method": "gradient-descent", "steps": STEPS, "step_size": STEP_SIZE,
    "initialization": "gaussian", "network_precision": "float64",
}  # fmt: skip


def rounds_of(bandit, belief, paper, **training):
    """Round by round beside a transcription that trains: yields the contexts, the key and the choice."""
    select, observe, learn = map(jax.jit, (bandit.select, bandit.observe, bandit.learn))
    contexts, rewards = stream("float64")
    played, got = np.zeros((ROUNDS, DIM)), np.zeros(ROUNDS)
    for t in range(ROUNDS):
        choice = select(jax.random.key(t), belief, contexts[t])
        yield contexts[t], jax.random.key(t), choice
        arm = int(choice.arm)
        belief = observe(belief, contexts[t, arm], rewards[t, arm])
        paper.observe(contexts[t, arm], rewards[t, arm])
        played[t], got[t] = contexts[t, arm], rewards[t, arm]
        belief, _ = learn(jax.random.key(t), belief, History(played, got, np.int32(t + 1), np.int32(t + 1)))
        paper.learn(step_size=STEP_SIZE, steps=STEPS, **training)


def test_neural_ts_follows_the_transcription():
    bandit = build("neural-ts", dim=DIM, exploration=0.5, **TRAINED | {"regularization": 0.3, "design": "full"})
    belief = bandit.init(jax.random.key(0))
    paper = neural_ts.NeuralTS(belief.initial, m=WIDTH, lam=0.3, nu=0.5)
    for contexts, key, choice in rounds_of(bandit, belief, paper):
        draws = jax.random.normal(jax.random.split(key)[0], (ARMS,), "float64")
        samples = paper.samples(contexts, np.asarray(draws))
        assert_allclose(choice.score, samples, rtol=1e-6, atol=1e-8)
        assert int(choice.arm) == samples.argmax()
        assert_allclose(choice.propensity, paper.chances(contexts), atol=1e-5)


def test_neural_square_cb_follows_the_transcription():
    bandit = build("neural-square-cb", dim=DIM, learning_rate=20.0, **TRAINED)
    belief = bandit.init(jax.random.key(0))
    paper = neural_ucb.NeuralUCB(belief.initial, regularization=1.0, factor=np.sqrt(WIDTH))
    for contexts, _, choice in rounds_of(bandit, belief, paper, pull=WIDTH):
        predicted = paper.means(contexts)
        assert_allclose(choice.mean, predicted, rtol=1e-6, atol=1e-9)
        assert_allclose(choice.propensity, square_cb.probabilities(predicted, 20.0), rtol=1e-5)


def test_neural_epsilon_greedy_without_chance_plays_the_transcriptions_highest_mean():
    bandit = build("neural-epsilon-greedy", dim=DIM, epsilon=0.0, **TRAINED)
    belief = bandit.init(jax.random.key(0))
    paper = neural_ucb.NeuralUCB(belief.initial, regularization=1.0, factor=np.sqrt(WIDTH))
    for contexts, _, choice in rounds_of(bandit, belief, paper, pull=WIDTH):
        assert_allclose(choice.mean, paper.means(contexts), rtol=1e-6, atol=1e-9)
        assert int(choice.arm) == paper.means(contexts).argmax()


def follow(bandit, paper, upper, *, rounds=ROUNDS, tolerance=1e-6):
    """Play a policy that does not train beside its transcription: same scores, same arms."""
    select, observe = jax.jit(bandit.select), jax.jit(bandit.observe)
    belief = bandit.init(jax.random.key(0))
    contexts, rewards = stream("float64")
    for t in range(rounds):
        choice = select(jax.random.key(t), belief, contexts[t])
        expected = upper(contexts[t])
        assert_allclose(choice.score, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())
        arm = int(choice.arm)
        assert np.isclose(expected[arm], expected.max(), rtol=1e-9)  # KernelUCB's first round is a tie
        belief = observe(belief, contexts[t, arm], rewards[t, arm])
        paper.observe(contexts[t, arm], rewards[t, arm])


@pytest.mark.parametrize("regularization", [0.1, 10.0])
@pytest.mark.parametrize("step_size", [1.0, 10.0])
def test_glm_ucb_follows_the_transcription(regularization, step_size):
    bandit = build("glm-ucb", dim=DIM, exploration=0.3, regularization=regularization, step_size=step_size)
    paper = glm_ucb.GlmUCB(DIM, regularization=regularization, step_size=step_size)
    follow(bandit, paper, lambda contexts: paper.upper(contexts, 0.3))


@pytest.mark.parametrize("budget", [10, 100])
@pytest.mark.parametrize(("bandwidth", "regularization"), [(0.1, 1.0), (1.0, 1.0), (10.0, 0.01)])
def test_kernel_ucb_follows_the_transcription(bandwidth, regularization, budget):
    bandit = build(
        "kernel-ucb", dim=DIM, bandwidth=bandwidth, regularization=regularization, budget=budget, exploration=0.5
    )
    paper = kernel_ucb.KernelUCB(bandwidth=bandwidth, regularization=regularization, budget=budget)
    follow(bandit, paper, lambda contexts: paper.upper(contexts, 0.5))


@pytest.mark.parametrize("form", ["primal", "dual", "diagonal"])
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("regularization", [1.0, 1e-3])
def test_neural_ucb0_follows_the_transcription(form, depth, regularization):
    bandit = build(
        "neural-ucb0", dim=DIM, rounds=ROUNDS if form == "dual" else None, width=WIDTH, depth=depth,
        design="diagonal" if form == "diagonal" else "full", regularization=regularization, noise_bound=0.4,
        failure=0.05, norm=2.0, network_precision="float64",
    )  # fmt: skip
    belief = bandit.init(jax.random.key(0))
    assert hasattr(belief, "inverse_factor") == (form == "dual")
    paper = neural_ucb0.NeuralUCB0(
        belief.params,
        width=WIDTH,
        regularization=regularization,
        nu=0.4,
        delta=0.05,
        S=2.0,
        diagonal=form == "diagonal",
    )
    follow(bandit, paper, paper.upper)


def test_neural_epsilon_greedy0_without_chance_plays_the_transcriptions_highest_mean():
    bandit = build("neural-epsilon-greedy0", dim=DIM, width=WIDTH, epsilon=0.0, network_precision="float64")
    paper = neural_ucb0.NeuralUCB0(
        bandit.init(jax.random.key(0)).params, width=WIDTH, regularization=1.0, nu=1.0, delta=0.1, S=1.0
    )
    follow(bandit, paper, paper.means)


def test_bootstrapped_nn_follows_the_transcription():
    networks = 3
    bandit = build("bootstrapped-nn", dim=DIM, networks=networks, inclusion=0.6, **TRAINED)
    select, observe, learn = map(jax.jit, (bandit.select, bandit.observe, bandit.learn))
    belief = bandit.init(jax.random.key(0))
    paper = bootstrapped_nn.BootstrappedNN(
        [[leaf[which] for leaf in belief.initial] for which in range(networks)], factor=np.sqrt(WIDTH)
    )
    shares = [
        np.asarray(jax.random.uniform(key, (ROUNDS,), np.float32) < 0.6)
        for key in jax.random.split(belief.samples, networks)
    ]
    contexts, rewards = stream("float64")
    played, got, decided = np.zeros((ROUNDS, DIM)), np.zeros(ROUNDS), set()
    for t in range(ROUNDS):
        choice = select(jax.random.key(t), belief, contexts[t])
        means = [paper.means(which, contexts[t]) for which in range(networks)]
        which = int(np.argmin([np.abs(np.asarray(choice.mean) - mean).max() for mean in means]))
        decided.add(which)
        assert_allclose(choice.mean, means[which], rtol=1e-6, atol=1e-9)
        arm = int(choice.arm)
        assert arm == means[which].argmax()
        belief = observe(belief, contexts[t, arm], rewards[t, arm])
        paper.observe(contexts[t, arm], rewards[t, arm], [share[t] for share in shares])
        played[t], got[t] = contexts[t, arm], rewards[t, arm]
        belief, info = learn(jax.random.key(t), belief, History(played, got, np.int32(t + 1), np.int32(t + 1)))
        paper.learn(pull=WIDTH, step_size=STEP_SIZE, steps=STEPS)
        assert not info.diverged
    assert decided == set(range(networks))
    assert 0.3 < np.mean(shares) < 0.9


def test_a_linear_kernel_is_lin_ucb():
    settings = {"dim": DIM, "regularization": 0.3, "exploration": 0.7}
    dual = build("kernel-ucb", kernel="linear", budget=100, **settings)
    primal = build("lin-ucb", **settings)
    a, b = dual.init(jax.random.key(0)), primal.init(jax.random.key(0))
    contexts, rewards = stream("float64")
    for t in range(ROUNDS):
        ours, theirs = (
            bandit.select(jax.random.key(t), belief, contexts[t]) for bandit, belief in ((dual, a), (primal, b))
        )
        assert_allclose(ours.score, theirs.score, rtol=1e-9, atol=1e-9)
        a, b = dual.observe(a, contexts[t, 0], rewards[t, 0]), primal.observe(b, contexts[t, 0], rewards[t, 0])


def test_the_newton_steps_matrix_is_inverted_exactly():
    bandit = build("glm-ucb", dim=DIM, regularization=0.3)
    belief, V = bandit.init(jax.random.key(0)), 0.3 * np.eye(DIM)
    contexts, _ = stream("float64")
    for x in contexts[:, 0]:
        belief = bandit.observe(belief, x, np.float64(1))
        V += np.outer(x, x)
    assert_allclose(V @ belief.z.inverse, np.eye(DIM), atol=1e-11)


def test_a_dual_form_played_longer_than_planned_says_so():
    bandit = build("neural-ucb0", dim=DIM, rounds=5, width=WIDTH)
    belief, contexts = bandit.init(jax.random.key(0)), stream("float32")[0]
    for t in range(6):
        assert np.isfinite(bandit.select(jax.random.key(t), belief, contexts[t]).score).all()
        belief = bandit.observe(belief, contexts[t, 0], np.float32(1))
    assert np.isnan(bandit.select(jax.random.key(0), belief, contexts[0]).score).all()
    with pytest.raises(ValueError, match="rounds must be a whole number of at least 1, got 0"):
        build("neural-ucb0", dim=DIM, rounds=0)
