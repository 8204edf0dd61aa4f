"""Warm start: a policy that has learned from a log before its first decision."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

from neuralucb.history import History
from neuralucb.logs.batches import Batch, batches
from neuralucb.logs.formats import Log
from neuralucb.policy import Belief, Info, Policy, Slot
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import exact
from neuralucb.runtime.records import brief

__all__ = ["Learned", "chosen", "learn_from"]


@brief
class Learned(NamedTuple):
    """What was learned from a log: the belief, the history it was trained on, and how training went."""

    belief: Belief
    history: History
    info: Info


def learn_from(key: jax.Array, policy: Policy, log: Log, *, begin: int = 0, end: int | None = None) -> Learned:
    """The policy's belief after it has observed the logged decisions and learned once.

    Learning from what another policy chose needs no propensities. Memory: 4 bytes per feature and decision.

    Args:
        key: For the belief's initialization and for learning.
        policy: As `build(name, **shape_of(log))` makes it.
        log: The log; decisions without a reward are ignored.
        begin: Number of the first decision, from 0.
        end: Number of the decision after the last; by default that of the log's end.

    Returns:
        The belief, the history that it was trained on, and how training went.

    Raises:
        InputError: No decision in that range has a reward.

    Example:
        >>> from neuralucb.logs import open_log
        >>> from neuralucb.logs.batches import shape_of
        >>> log = open_log(Path("log.parquet"))
        >>> policy = build("lin-ucb", **shape_of(log))
        >>> belief = learn_from(jax.random.key(0), policy, log).belief
    """
    key_init, key_learn = random.split(key)
    belief = policy.init(key_init)

    kept: list[Any] = []
    rewards: list[np.ndarray] = []
    for batch in batches(log, begin=begin, end=end):
        use = batch.valid & ~np.isnan(batch.reward)
        contexts, reward = chosen(batch), np.where(use, batch.reward, 0).astype(np.float32)
        belief = _observe_all(policy, belief, contexts, reward, use)
        kept.append(jax.tree.map(lambda leaf, use=use: np.asarray(leaf)[use], contexts))
        rewards.append(reward[use])
    if not sum(map(len, rewards)):
        raise InputError(f"{log.path} has no reward among the decisions to learn from; give a range that has some.")
    all_contexts = jax.tree.map(lambda *leaves: jnp.asarray(np.concatenate(leaves)), *kept)
    seen = jnp.int32(sum(map(len, rewards)))
    history = History(all_contexts, jnp.asarray(np.concatenate(rewards)), seen, seen)
    belief, info = policy.learn(key_learn, belief, history)
    return Learned(belief, history, info)


def chosen(batch: Batch) -> Any:
    """[n, …] the context of the arm that was chosen in each decision."""
    rows = np.arange(len(batch.arm))
    if batch.own.shape[2] == 0:
        return Slot._make((batch.shared, batch.arm))
    return np.concatenate([batch.shared, batch.own[rows, batch.arm]], axis=1)


@exact
@partial(jax.jit, static_argnums=0)
def _observe_all(policy: Policy, belief: Belief, contexts: Any, rewards: jax.Array, use: jax.Array) -> Belief:
    def one(belief: Belief, row: tuple[Any, jax.Array, jax.Array]) -> tuple[Belief, None]:
        context, reward, used = row
        return lax.cond(used, lambda now: policy.observe(now, context, reward), lambda now: now, belief), None

    return lax.scan(one, belief, (contexts, rewards, use))[0]
