"""What the tests of `online` share: small policies and bandits, contexts, rounds to play, and a fingerprint."""

from functools import lru_cache

import numpy as np

from neuralucb import OnlineBandit, build
from neuralucb.algorithms import ALGORITHMS
from neuralucb.online.observations import ABOUT

DIM, ARMS = 3, 4
SIZES = {"width": 8, "steps": 5, "networks": 2, "models": 3, "policies": 3, "budget": 40}
DIAGONAL = ("neural-ucb", "neural-ucb0", "neural-epsilon-greedy0", "neural-ts")
PLAIN = {"units": "given", "retries": 0, "optimizer": "plain", "decay": "none"}
"""Contexts and rewards as they are given, and plain steps, which may diverge."""


def new_policy(name="neural-ucb", *, shared_by=None, **settings):
    """A policy that shares no compiled program with another, for tests that count compilations."""
    rounds = 100 if name == "kernel-ucb" else None
    own = {setting.name for setting in ALGORITHMS[name].settings}
    small = {size: value for size, value in SIZES.items() if size in own}
    small |= {"design": "diagonal"} if name in DIAGONAL else {}
    return build(name, dim=DIM, rounds=rounds, shared_by=shared_by, **small | settings)


make = lru_cache(maxsize=None)(new_policy)
"""The same policy for the same arguments, so that its programs are compiled once per session."""


def linear():
    return make("lin-ucb")


def bandit(**settings):
    return OnlineBandit(make(), **{"schedule": "10", **settings})


def contexts(seed=0, *lengths):
    return np.random.default_rng(seed).normal(size=(*(lengths or (ARMS,)), DIM)).astype(np.float32)


def play(one, rounds, seed=0):
    """Play rounds in which the reward is the first feature; returns every score, mean and position."""
    seen = []
    for row in contexts(seed, rounds, ARMS):
        decision = one.select(row)
        one.observe(decision.id, float(row[decision.position, 0]))
        seen.append(np.concatenate([decision.score, decision.mean, [decision.position]]))
    return np.asarray(seen)


def fingerprint(one):
    """Everything that a bandit knows, comparable: what is NaN in one is NaN in the other.

    When its decisions were made is left out: two bandits that are told the same are told so one after the other.
    """
    fields, arrays = one.state.export()
    arrays["history.about"] = np.delete(arrays["history.about"], ABOUT.index("time"), axis=1)
    return repr(fields), {name: array.tobytes() for name, array in arrays.items()}


def rewrite(path, data):
    """Replace a file. Deleting it first is thirty times faster: ext4 flushes one that is truncated and rewritten."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)
