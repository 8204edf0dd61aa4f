"""The library against the transcriptions, round by round: same arms, U, Z, log det, θ and γ_t."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import build
from neuralucb.designs import diagonal
from neuralucb.history import History
from tests.reference import lin_ucb, neural_ucb

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
    return np.diag(np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in belief.z]))


def log_det(belief, design, regularization):
    if design == "full":
        return belief.z.log_det
    return diagonal(belief.params, ridge=regularization, dtype=belief.z[0].dtype).log_det(belief.z)


def play(precision, tolerance, *, design, depth, regularization, confidence="constant", **other):
    settings = {
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
        belief, info = learn(jax.random.key(t), belief, History(played, got, np.int32(t + 1)))
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
@pytest.mark.parametrize("design", ["full", "diagonal"])
def test_neural_ucb_follows_algorithm_1_in_float32(design, regularization):
    play("float32", 1e-3, design=design, depth=2, regularization=regularization)


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


def test_neural_epsilon_greedy_without_chance_plays_the_transcriptions_highest_mean():
    settings = {"width": WIDTH, "method": "gradient-descent", "steps": STEPS, "step_size": STEP_SIZE, "epsilon": 0.0}
    bandit = build("neural-epsilon-greedy", dim=DIM, network_precision="float64", initialization="gaussian", **settings)
    select, observe, learn = map(jax.jit, (bandit.select, bandit.observe, bandit.learn))
    belief = bandit.init(jax.random.key(0))
    paper = neural_ucb.NeuralUCB(belief.initial, regularization=1.0, factor=np.sqrt(WIDTH))
    contexts, rewards = stream("float64")
    played, got = np.zeros((ROUNDS, DIM)), np.zeros(ROUNDS)
    for t in range(ROUNDS):
        choice = select(jax.random.key(t), belief, contexts[t])
        assert_allclose(choice.mean, paper.means(contexts[t]), rtol=1e-6, atol=1e-9)
        arm = int(choice.arm)
        assert arm == paper.means(contexts[t]).argmax()
        belief = observe(belief, contexts[t, arm], rewards[t, arm])
        paper.observe(contexts[t, arm], rewards[t, arm])
        played[t], got[t] = contexts[t, arm], rewards[t, arm]
        belief, _ = learn(jax.random.key(t), belief, History(played, got, np.int32(t + 1)))
        paper.learn(pull=WIDTH, step_size=STEP_SIZE, steps=STEPS)
