"""Algorithms without a network against their transcriptions, round by round, for both kinds of contexts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import build
from neuralucb.history import append, empty
from neuralucb.policy import Noted, Slot, remember
from tests.reference import (
    banditron,
    epoch_greedy,
    exp4,
    gloc,
    gp_ucb,
    lin_ts,
    online_cover,
    perturbed_history,
    ucb_glm,
)

DIM, ARMS, ROUNDS = 3, 3, 25
pytestmark = pytest.mark.usefixtures("wide")
both = pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])


class Game:
    """A policy's rounds: `plain` contexts [K, p] as a transcription reads them, the choice, and what was played."""

    def __init__(self, name, shared, **settings):
        self.shared, self.size = shared, DIM * ARMS if shared else DIM
        self.bandit = build(name, dim=DIM, shared_by=ARMS if shared else None, **settings)
        self.belief = self.bandit.init(jax.random.key(0))
        generator = np.random.default_rng(5)
        self.x = generator.normal(size=(ROUNDS, ARMS, DIM)).astype(np.float32)
        if shared:
            self.x[:] = self.x[:, :1]
        self.rewards = generator.uniform(size=(ROUNDS, ARMS)).astype(np.float32)
        example = Slot(self.x[0, 0], np.int32(0)) if shared else self.x[0, 0]
        self.history = empty(example, capacity=ROUNDS)

    def contexts(self, t):
        return (
            Slot(jnp.asarray(self.x[t]), jnp.arange(ARMS, dtype=jnp.int32)) if self.shared else jnp.asarray(self.x[t])
        )

    def plain(self, t):
        """[K, p] in float64: (0, …, x, …, 0) where arms share x."""
        x = self.x[t].astype(np.float64)
        return np.stack([np.kron(np.eye(ARMS)[a], x[a]) for a in range(ARMS)]) if self.shared else x

    def rounds(self, *, learns=False, forced=False):
        """(t, plain contexts, choice); then the arm chosen, or t mod K if forced, is played and its reward observed."""
        for t in range(ROUNDS):
            contexts = self.contexts(t)
            choice = self.bandit.select(jax.random.key(t), self.belief, contexts)
            choice = choice._replace(arm=jnp.int32(t % ARMS)) if forced else choice
            self.arm = int(choice.arm)
            self.reward = float(self.rewards[t, self.arm])
            yield t, self.plain(t), choice
            everything = jnp.ones(ARMS, bool)
            kept = remember(self.bandit, self.belief, contexts, everything, choice)
            self.belief = self.bandit.observe(self.belief, kept, jnp.float32(self.reward))
            context = jax.tree.map(lambda leaf: leaf[self.arm], contexts)
            self.history = append(self.history, context, self.reward)
            if learns:
                self.belief, info = self.bandit.learn(jax.random.key(1000 + t), self.belief, self.history)
                assert not info.diverged


@both
def test_lin_ts_follows_the_transcription(shared):
    game = Game("lin-ts", shared, exploration=0.7, regularization=0.3)
    paper = lin_ts.LinTS(game.size, regularization=0.3, v=0.7)
    for t, contexts, choice in game.rounds():
        draws = np.asarray(jax.random.normal(jax.random.split(jax.random.key(t))[0], (ARMS,), "float64"))
        samples = paper.means(contexts) + paper.deviations(contexts) * draws
        assert_allclose(choice.score, samples, rtol=1e-6, atol=1e-9)
        assert game.arm == samples.argmax()
        if t % 5 == 4:  # the transcription integrates slowly
            assert_allclose(choice.propensity, paper.chances(contexts), atol=1e-5)
        paper.observe(contexts[game.arm], game.reward)


@both
def test_ucb_glm_with_a_lesson_per_round_follows_the_transcription(shared):
    game = Game("ucb-glm", shared, exploration=0.4, regularization=0.3)
    paper = ucb_glm.UcbGLM(game.size, regularization=0.3)
    for t, contexts, choice in game.rounds(learns=True):
        upper = paper.upper(contexts, 0.4)
        assert_allclose(choice.score, upper, rtol=1e-6, atol=1e-7)
        assert_allclose(choice.mean, 1 / (1 + np.exp(-contexts @ paper.theta)), rtol=1e-6)
        assert upper[game.arm] >= upper.max() - 1e-6
        if t < 12:  # the transcription's search is slow
            paper.observe(contexts[game.arm], game.reward)
            paper.learn()
        else:
            break


def test_between_lessons_ucb_glm_stays_near_the_likelihoods_maximum():
    stepped, fitted = (Game("ucb-glm", False, exploration=0.4, regularization=1.0) for _ in range(2))
    for _ in stepped.rounds():
        pass
    fitted.belief, _ = fitted.bandit.learn(jax.random.key(0), fitted.belief, stepped.history)
    apart = np.linalg.norm(stepped.belief.fit.coefficients - fitted.belief.fit.coefficients)
    assert apart < 0.05 * np.linalg.norm(fitted.belief.fit.coefficients)


@both
def test_gloc_follows_the_transcription(shared):
    game = Game("gloc", shared, exploration=0.4, regularization=0.3, step_size=4.0)
    paper = gloc.Gloc(game.size, regularization=0.3, step_size=4.0)
    for _, contexts, choice in game.rounds():
        upper = paper.upper(contexts, 0.4)
        assert_allclose(choice.score, upper, rtol=1e-6, atol=1e-9)
        assert upper[game.arm] >= upper.max() - 1e-9
        paper.observe(contexts[game.arm], game.reward)


@both
def test_gp_ucb_follows_the_transcription(shared):
    game = Game("gp-ucb", shared, exploration=0.5, regularization=0.2, bandwidth=1.5, failure=0.05, budget=ROUNDS)
    paper = gp_ucb.GpUCB(bandwidth=1.5, variance=0.2, failure=0.05)
    for t, _, choice in game.rounds():
        pairs = [(game.x[t, arm].astype(np.float64), arm if shared else 0) for arm in range(ARMS)]
        upper = paper.upper(pairs, 0.5)
        assert_allclose(choice.score, upper, rtol=1e-6)
        assert upper[game.arm] >= upper.max() - 1e-9
        paper.observe(pairs[game.arm], game.reward)


def test_gp_ucb_with_a_constant_scale_is_kernel_ucb_with_another_scale():
    """σ_t is √λ times KernelUCB's width: c of one is c√λ of the other, and the means are equal."""
    gaussian = Game("gp-ucb", False, exploration=0.5, regularization=0.25, confidence="constant", budget=ROUNDS)
    kernel = Game("kernel-ucb", False, exploration=0.5 * 0.25**0.5, regularization=0.25, budget=ROUNDS)
    for (_, _, ours), (_, _, theirs) in zip(gaussian.rounds(), kernel.rounds(), strict=True):
        assert_allclose(ours.score, theirs.score, rtol=1e-9)
        assert_allclose(ours.mean, theirs.mean, rtol=1e-9, atol=1e-12)


@both
@pytest.mark.parametrize("c", [0.5, 2.0])
def test_epoch_greedy_follows_the_transcription(shared, c):
    game = Game("epoch-greedy", shared, exploitation=c, regularization=0.3)
    paper = epoch_greedy.EpochGreedy(game.size, regularization=0.3, c=c)
    explored = 0
    for _, contexts, choice in game.rounds():
        assert_allclose(choice.mean, paper.means(contexts), rtol=1e-6, atol=1e-9)
        assert_allclose(choice.propensity, paper.chances(contexts), rtol=1e-6)
        explored += paper.explores
        paper.observe(contexts[game.arm], game.reward)
    assert 3 <= explored < ROUNDS


@both
def test_banditron_follows_the_transcription(shared):
    game = Game("banditron", shared, epsilon=0.3)
    paper = banditron.Banditron(DIM, ARMS, gamma=0.3) if shared else banditron.LinearBanditron(DIM, gamma=0.3)
    for t, contexts, choice in game.rounds():
        given = game.x[t, 0].astype(np.float64) if shared else contexts
        assert_allclose(choice.propensity, paper.chances(given), rtol=1e-5)
        paper.observe(given, game.arm, game.reward)
        weights = paper.W if shared else paper.w[None]
    assert_allclose(game.belief.weights, weights, rtol=1e-4, atol=1e-4)


def test_both_steps_of_banditron_are_the_perceptrons_in_expectation():
    generator = np.random.default_rng(0)
    contexts, rewards = generator.normal(size=(ARMS, DIM)), generator.uniform(size=ARMS)
    start = generator.normal(size=DIM)
    best = (contexts @ start).argmax()
    expected = np.zeros(DIM)
    for arm in range(ARMS):
        paper = banditron.LinearBanditron(DIM, gamma=0.3)
        paper.w = start
        chance = paper.chances(contexts)[arm]
        paper.observe(contexts, arm, rewards[arm])
        expected += chance * (paper.w - start)
    assert_allclose(expected, rewards @ contexts - contexts[best])


@both
def test_online_cover_follows_the_transcription(shared):
    game = Game("online-cover", shared, exploration=0.6, bonus=0.5, policies=3, regularization=0.5)
    paper = online_cover.OnlineCover(game.size, policies=3, psi=0.5, c=0.6, regularization=0.5)
    for _, contexts, choice in game.rounds():
        theta = paper.coefficients()
        assert_allclose(choice.mean, contexts @ theta[:, 0], rtol=1e-4, atol=1e-5)
        assert_allclose(choice.score, (contexts @ theta).mean(axis=1), rtol=1e-4, atol=1e-5)
        assert_allclose(choice.propensity, paper.chances(contexts), rtol=1e-4)
        paper.observe(contexts, game.arm, game.reward)


@both
def test_exp4_follows_the_transcription_and_its_experts_learn_as_if_alone(shared):
    names = ("lin-ucb", "lin-ts", "banditron")
    game = Game("exp4", shared, epsilon=0.4, experts="+".join(names))
    alone = [build(name, dim=DIM, shared_by=ARMS if shared else None) for name in names]
    beliefs = [expert.init(jax.random.key(0)) for expert in alone]
    paper = exp4.Exp4(len(names), gamma=0.4)
    everything = jnp.ones(ARMS, bool)
    for t, _, choice in game.rounds():
        contexts = game.contexts(t)
        asked = [expert.select(jax.random.key(1), own, contexts) for expert, own in zip(alone, beliefs, strict=True)]
        opinions = np.stack([np.asarray(one.propensity, np.float64) for one in asked])
        assert_allclose(choice.propensity, paper.chances(opinions), rtol=1e-4)
        paper.observe(opinions, game.arm, game.reward)
        beliefs = [
            expert.observe(own, remember(expert, own, contexts, everything, choice), jnp.float32(game.reward))
            for expert, own in zip(alone, beliefs, strict=True)
        ]
    weights = np.exp(np.asarray(game.belief.log_weights, np.float64))
    assert_allclose(weights / weights.sum(), paper.w / paper.w.sum(), rtol=1e-4)
    for ours, theirs in zip(game.belief.beliefs, beliefs, strict=True):
        jax.tree.map(lambda a, b: assert_allclose(a, b, rtol=1e-5, atol=1e-5), ours, theirs)


@both
def test_perturbed_history_follows_the_transcription_between_lessons(shared):
    """For the linear link Newton steps are exact: each model is the regression on its noisy rewards."""
    game = Game("perturbed-history", shared, perturbation=0.4, regularization=0.5, models=3)
    start, noise = np.asarray(game.belief.fits.centre).reshape(3, -1), game.belief.noise
    X, r = [], []
    for t, contexts, choice in game.rounds():
        for model in range(3) if t % 8 == 7 else ():
            theta = perturbed_history.fit(
                "linear", np.array(X), np.array(r)[:, model], start[model], regularization=0.5
            )
            assert_allclose(np.ravel(game.belief.fits.coefficients[model]), theta, rtol=1e-5, atol=1e-6)
        decided = contexts @ np.asarray(game.belief.fits.coefficients).reshape(3, -1).T
        assert any(np.allclose(choice.score, decided[:, model], rtol=1e-6) for model in range(3))
        shares = np.bincount(decided.argmax(axis=0), minlength=ARMS) / 3
        assert_allclose(choice.propensity, shares, rtol=1e-6)
        X.append(contexts[game.arm])
        r.append(game.reward + 0.4 * np.asarray(jax.random.normal(jax.random.fold_in(noise, t), (3,), "float64")))


@pytest.mark.parametrize("link", ["linear", "logistic"])
@both
def test_a_lesson_fits_every_model_of_perturbed_history_to_new_noise(shared, link):
    game = Game("perturbed-history", shared, perturbation=0.4, regularization=0.5, models=2, link=link)
    X, r = [], []
    for _, contexts, _ in game.rounds():
        X.append(contexts[game.arm])
        r.append(game.reward)
    key = jax.random.key(9)
    before = np.asarray(game.belief.fits.centre)
    after, _ = game.bandit.learn(key, game.belief, game.history)
    assert not np.allclose(after.fits.centre, before)
    keys = jax.random.split(jax.random.split(key)[1], 2)
    for model in range(2):
        noise = 0.4 * np.asarray(jax.random.normal(keys[model], (ROUNDS,), "float32"))
        start = np.ravel(after.fits.centre[model])
        theta = perturbed_history.fit(link, np.array(X), np.array(r) + noise, start, regularization=0.5)
        assert_allclose(np.ravel(after.fits.coefficients[model]), theta, rtol=1e-4, atol=1e-5)


def test_without_noise_perturbed_history_is_greedy_ridge_regression():
    game, greedy = (
        Game(name, False, regularization=0.5, **own)
        for name, own in (("perturbed-history", {"perturbation": 0.0, "models": 2}), ("lin-ucb", {"exploration": 0.0}))
    )
    for (_, _, ours), (_, _, theirs) in zip(game.rounds(forced=True), greedy.rounds(forced=True), strict=True):
        assert_allclose(ours.mean, theirs.mean, rtol=1e-6, atol=1e-9)
        assert_allclose(ours.propensity, theirs.propensity)


@pytest.mark.parametrize(
    ("experts", "message"),
    [
        ("lin-ucb+exp4", "experts must be other algorithms that learn, got 'exp4' among them"),
        ("oracle", "experts must be other algorithms that learn, got 'oracle' among them"),
        ("lin-ucb+magic", "experts must be .*, got 'magic': algorithm 'magic' is not known; known: neural-mix"),
        ("lin-ucb+", r"experts \(ξ_i\) must be names of algorithms, with \+ between them"),
    ],
)
def test_experts_that_cannot_advise_are_refused(experts, message):
    with pytest.raises(ValueError, match=message):
        build("exp4", dim=DIM, experts=experts)


def test_experts_may_be_a_list():
    assert build("exp4", dim=DIM, experts=["lin-ucb", "lin-ts"]) == build("exp4", dim=DIM, experts="lin-ucb+lin-ts")


def test_a_cover_without_exploration_is_refused():
    """Without ε_t, an arm that no policy chooses would have the bonus 0/0."""
    with pytest.raises(ValueError, match=r"exploration \(c\) must be a number > 0, got 0"):
        build("online-cover", dim=DIM, exploration=0)


def test_a_note_of_another_size_is_refused():
    bandit = build("banditron", dim=DIM)
    with pytest.raises(ValueError, match="note must be 2 numbers, as `remember` takes them"):
        bandit.observe(
            bandit.init(jax.random.key(0)), Noted(np.zeros(DIM, np.float32), np.zeros(3, np.float32)), np.float32(1)
        )
