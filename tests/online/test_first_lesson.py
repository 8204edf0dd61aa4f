"""What users get without asking learns at its first lesson, on contexts and rewards in any unit."""

import numpy as np
import pytest

from neuralucb import OnlineBandit, build

TRAINED = ("neural-mix", "neural-ucb", "neural-ts", "neural-epsilon-greedy", "neural-square-cb", "bootstrapped-nn")
SMALL = {"width": 8, "steps": 10}


def play(bandit, contexts, rewards):
    """[T] regret, counted by the rewards themselves."""
    regret = []
    for shown, received in zip(contexts, rewards, strict=True):
        decision = bandit.select(shown)
        bandit.observe(decision.id, float(received[decision.position]))
        regret.append(received.max() - received[decision.position])
    return np.array(regret)


def test_neural_ucb_as_built_learns_at_its_first_lesson():
    generator = np.random.default_rng(8)
    contexts = generator.normal(size=(200, 4, 20)).astype(np.float32)
    rewards = contexts @ generator.normal(size=20) / np.sqrt(20)
    bandit = OnlineBandit(build("neural-ucb", dim=20), schedule="100")
    regret = play(bandit, contexts, rewards)
    chance = rewards.max(axis=1) - rewards.mean(axis=1)
    health = bandit.health()
    assert (health.learned, health.diverged, health.failure) == (2, 0, None)

    def is_below_chance(rounds):
        gap = chance[rounds] - regret[rounds]
        return gap.mean() > 5 * gap.std(ddof=1) / np.sqrt(len(gap))

    assert is_below_chance(slice(100, 200))
    assert not is_below_chance(slice(0, 100)), "before it the same test must fail"
    assert regret[100:].mean() < 0.5 * chance[100:].mean()


def lessons(name, unit, **settings):
    generator = np.random.default_rng(9)
    contexts = unit * generator.normal(size=(48, 3, 4)).astype(np.float32)
    bandit = OnlineBandit(build(name, dim=4, **SMALL | settings), schedule="12")
    play(bandit, contexts, 5 * unit + unit * generator.normal(size=(48, 3)) + contexts.sum(axis=2))
    health = bandit.health()
    assert np.isfinite(bandit.select(contexts[0]).score).all()
    return health.learned, health.diverged, health.refused


@pytest.mark.parametrize("name", TRAINED)
def test_no_lesson_fails_on_contexts_and_rewards_of_size_10000(name):
    assert lessons(name, np.float32(1e4)) == (4, 0, 0)


def test_in_given_units_with_plain_steps_lessons_fail():
    """The control."""
    plain = {"units": "given", "retries": 0, "optimizer": "plain", "decay": "none"}
    assert lessons("neural-ucb", np.float32(1e4), **plain)[1] > 0
