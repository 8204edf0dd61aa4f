"""Small worlds that the tests of learned units and of the mixture play through `OnlineBandit`, as users do."""

from functools import cache
from typing import NamedTuple

import numpy as np

from neuralucb import OnlineBandit, build

DIM, ARMS, ROUNDS = 4, 4, 240
SMALL = {"width": 16, "steps": 60, "batch_size": 32, "step_size": 0.005}
"""240 rounds fit into the smallest history, so that `learn` is compiled once."""


class World(NamedTuple):
    """Contexts [T, K, d], expected rewards [T, K], and noise [T]."""

    contexts: np.ndarray
    expected: np.ndarray
    noise: np.ndarray

    def rewards(self):
        return self.expected + self.noise[:, None]


class Played(NamedTuple):
    """What a bandit did in a world."""

    arms: np.ndarray
    regret: np.ndarray
    """of every round"""
    bandit: OnlineBandit


def world(kind, seed, *, noise=0.1):
    """`linear`; `turn`, whose slope is the opposite in the second half; `bent`, |x·a|, of which a line sees nothing;
    `wave`, sin 2x·a; `blind`, where contexts say nothing."""
    generator = np.random.default_rng(seed)
    contexts = generator.normal(size=(ROUNDS, ARMS, DIM)).astype(np.float32)
    slope = contexts @ (lambda a: a / np.linalg.norm(a))(generator.normal(size=DIM))
    hidden = generator.normal(size=slope.shape)
    turned = np.where(np.arange(ROUNDS)[:, None] < ROUNDS // 2, slope, -slope)
    expected = {
        "linear": slope,
        "turn": turned,
        "bent": 2 * np.abs(slope),
        "wave": 2 * np.sin(2 * slope),
        "blind": hidden,
    }[kind]
    return World(contexts, expected, generator.normal(scale=noise, size=ROUNDS))


@cache
def policy(name="neural-mix", *, dim=DIM, **settings):
    """The same policy for the same arguments, so that its programs are compiled once."""
    return build(name, dim=dim, **({} if name in ("lin-ucb", "uniform") else SMALL | settings))


def play(one, contexts, rewards, expected=None, *, schedule="30", seed=1, **options):
    """Play every round; rewards [T, K] are what is observed, expected [T, K] what regret is counted by."""
    expected = rewards if expected is None else expected
    bandit = OnlineBandit(one, schedule=schedule, seed=seed, **options)
    arms, regret = [], []
    for shown, received, values in zip(contexts, rewards, expected, strict=True):
        decision = bandit.select(shown)
        bandit.observe(decision.id, float(received[decision.position]))
        arms.append(decision.position)
        regret.append(values.max() - values[decision.position])
    return Played(np.array(arms), np.array(regret), bandit)
