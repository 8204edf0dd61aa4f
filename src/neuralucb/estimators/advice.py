"""Exponential weights over policies as experts: EXP4 (Auer et al. 2002)."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import random

from neuralucb.history import History
from neuralucb.policy import Belief, Choice, Context, Info, Note, Noted, Policy
from neuralucb.rules import draw_arm, uniform_shares
from neuralucb.runtime.precision import Number

__all__ = ["Advice", "advice"]


class Advice(NamedTuple):
    """log w of each expert, up to a constant, and what each believes."""

    log_weights: jax.Array
    beliefs: tuple[Belief, ...]


def advice(experts: Sequence[Policy], *, share: Number) -> Policy:
    """Each expert's propensities are its advice ξ_i; weights follow what it would have earned (Auer et al. 2002, Exp4).

        p(a) = (1 - γ) Σ_i w_i ξ_i(a)/Σ_i w_i + γ/K,   w_i ← w_i exp(γ ŷ_i/K),   ŷ_i = ξ_i(a) r/p(a)

    Every expert observes every reward, whoever chose the arm, and has its lessons. ξ_i(a)/(p(a) K) is noted when the
    arm is chosen, and so are the experts' own notes; decisions of which nothing is known teach the experts alone.
    A round asks each expert twice, for the choice and for the note. Propensity: as exact as the experts'.
    Bare: `guard` adds the checks of its input.
    """
    sizes = [0 if expert.note is None else expert.note.size for expert in experts]

    def init(key: jax.Array) -> Advice:
        keys = random.split(key, len(experts))
        beliefs = tuple(expert.init(own) for expert, own in zip(experts, keys, strict=True))
        return Advice(jnp.zeros(len(experts), jnp.float32), beliefs)

    def ask(belief: Advice, contexts: Context, available: jax.Array) -> list[Choice]:
        """What each expert would do. Propensities do not depend on a key, and nothing else of the choice is used."""
        return [
            expert.select(random.key(0), own, contexts, available)
            for expert, own in zip(experts, belief.beliefs, strict=True)
        ]

    def select(key: jax.Array, belief: Advice, contexts: Context, available: jax.Array) -> Choice:
        choices, weights = ask(belief, contexts, available), jax.nn.softmax(belief.log_weights)
        gamma = jnp.asarray(share, jnp.float32)
        advised = weights @ jnp.stack([choice.propensity for choice in choices])
        propensity = gamma * uniform_shares(available) + (1 - gamma) * advised / advised.sum()
        mean, width = (
            weights @ jnp.stack([values.astype(jnp.float32) for values in column])
            for column in ([choice.mean for choice in choices], [choice.width for choice in choices])
        )
        return Choice(draw_arm(key, propensity), mean, width, propensity, gamma, propensity)

    def take(belief: Advice, contexts: Context, available: jax.Array, choice: Choice) -> jax.Array:
        advised = jnp.stack([one.propensity[choice.arm] for one in ask(belief, contexts, available)])
        p, count = choice.propensity[choice.arm], available.sum(dtype=jnp.int32).astype(jnp.float32)
        notes = [
            expert.note.take(own, contexts, available, choice)
            for expert, own in zip(experts, belief.beliefs, strict=True)
            if expert.note is not None
        ]
        return jnp.concatenate([(advised / (p * count)).astype(jnp.float32), *notes])

    def observe(belief: Advice, noted: Noted, reward: jax.Array) -> Advice:
        ratio, *notes = jnp.split(noted.note, [len(experts) + sum(sizes[:index]) for index in range(len(sizes))])
        log_weights = belief.log_weights + jnp.asarray(share, jnp.float32) * ratio * reward.astype(jnp.float32)
        beliefs = tuple(
            expert.observe(own, noted.context if expert.note is None else Noted(noted.context, note), reward)
            for expert, own, note in zip(experts, belief.beliefs, notes, strict=True)
        )
        return Advice(log_weights - log_weights.max(), beliefs)

    def learn(key: jax.Array, belief: Advice, history: History) -> tuple[Advice, Info]:
        keys = random.split(key, len(experts))
        lessons = [
            expert.learn(own_key, own, history)
            for expert, own_key, own in zip(experts, keys, belief.beliefs, strict=True)
        ]
        diverged = jnp.stack([info.diverged for _, info in lessons]).any()
        beliefs = tuple(after for after, _ in lessons)
        return belief._replace(beliefs=beliefs), Info.nothing()._replace(diverged=diverged)

    return Policy(init, select, observe, learn, note=Note(len(experts) + sum(sizes), take))
