"""A small world with a known truth: logs from it, a fixed policy to value, and that policy's true value."""

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.logs import Log, recorded
from neuralucb.policy import Choice, Info, Policy, check_slot, check_vector, guard
from neuralucb.rules import draw_arm

ARMS, DIM, LEVEL = 3, 2, 0.9
TRUTH = np.asarray([0.8, -0.5])
TARGET = np.asarray([1.5, 0.5])
TRUTHS = np.asarray([[0.8, -0.5], [0.1, 0.6], [-0.7, 0.2]])
TARGETS = np.asarray([[1.5, 0.5], [0.0, -1.0], [1.0, 1.0]])
"""The same for arms that share a context, one row per arm."""


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def fixed_policy(scores_of, check):
    """Arms with probabilities softmax(scores_of(contexts)), whatever it has seen."""

    def select(key, belief, contexts, available):
        score = jnp.where(available, scores_of(contexts), -jnp.inf)
        propensity = jax.nn.softmax(score)
        zero = jnp.zeros_like(score)
        return Choice(draw_arm(key, propensity), score, zero, score, zero[0], propensity)

    keep = lambda belief, context, reward: belief  # noqa: E731
    return guard(Policy(lambda key: (), select, keep, lambda key, belief, history: (belief, Info.nothing())), check)


POLICY = fixed_policy(lambda contexts: contexts @ jnp.asarray(TARGET, jnp.float32), check_vector(DIM))
SHARED_POLICY = fixed_policy(
    lambda contexts: jnp.sum(contexts.x * jnp.asarray(TARGETS, jnp.float32), axis=1), check_slot(DIM, ARMS)
)
"""The same where arms share a context: softmax(x · TARGETS[a])."""
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


def opposed_world(count, seed, *, own):
    """Logged by a policy that avoids what the evaluated one prefers, so that weights are large: up to about 20."""
    random = np.random.default_rng(seed)
    contexts = GRID[random.integers(len(GRID), size=(count, ARMS) if own else count)]
    mean, score = (contexts @ one if own else contexts @ each.T for one, each in ((TRUTH, TRUTHS), (TARGET, TARGETS)))
    p = 0.05 / ARMS + 0.95 * softmax(-0.7 * score)
    arm = (p.cumsum(axis=1) > random.random((count, 1))).argmax(axis=1)
    return recorded(contexts, arm, mean[np.arange(count), arm] + random.normal(size=count), p)


def in_memory(*chunks):
    decisions = sum(len(chunk.line) for chunk in chunks)
    return Log("memory", chunks[-1].names, ARMS, decisions, lambda: iter(chunks))


def true_value(bend=0.0):
    """Of TARGET's policy, over all combinations of contexts."""
    arms = np.stack([each.ravel() for each in np.meshgrid(*[np.arange(len(GRID))] * ARMS)], axis=1)
    contexts = GRID[arms]
    return float((softmax(contexts @ TARGET) * expected(contexts, bend)).sum(axis=1).mean())


def true_value_shared():
    """Of SHARED_POLICY, over all contexts."""
    return float((softmax(GRID @ TARGETS.T) * (GRID @ TRUTHS.T)).sum(axis=1).mean())


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
