"""NeuralMix's estimator: one network at several pulls and ridge regressions, mixed by how well each predicted."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import random

from neuralucb.designs import Forgetting
from neuralucb.estimators.neural import Neural
from neuralucb.estimators.ridge import Ridge
from neuralucb.history import History
from neuralucb.policy import Choice, Context, Estimator, Info, Note, Noted, Prediction
from neuralucb.runtime.precision import Number

__all__ = ["Mixture", "mixture", "slopes", "weights"]

SMALLEST_ERROR = 1e-2
"""Mean squared errors below this, in units of the rewards' variance, are not told apart."""

TRUST = 30.0
"""A member is trusted at first as if so many predictions of one deviation of the rewards each had been right."""

TOO_LARGE = 3.0
"""Predictions up to so many times too large stay as they are: then errors tell well enough who sees more."""

LEAST_NOISE = 0.5
"""σ for the width is at least this share of the rewards' deviation: who plays one arm only predicts it well, and knows
nothing of the others."""


class Mixture(NamedTuple):
    """Every member's belief, and the errors that it made on rewards it had not seen."""

    networks: Neural
    """with a leading axis of members"""
    regressions: tuple[Ridge, ...]
    """then those that forget, in the same order"""
    errors: jax.Array
    """E_j = Σ_i ρ^(t-i) (a_j times the prediction of member j for reward i, made when its arm was chosen, less the
    reward)²"""
    products: jax.Array
    """Σ_i ρ^(t-i) (that prediction times the reward)"""
    squares: jax.Array
    """Σ_i ρ^(t-i) (that prediction)²"""
    validated: jax.Array
    """N = Σ_i ρ^(t-i)"""
    plays: jax.Array
    """n_a, how often each arm was played; of length 0 where arms do not share a context"""


def mixture(
    network_at: Callable[[Number], Estimator],
    pulls: Sequence[Number],
    regressions: Sequence[Estimator],
    forgetting: Sequence[Estimator] = (),
    *,
    discount: Number,
    sharpness: Number,
    arms: int,
    novelty: Number,
) -> tuple[Estimator, Note]:
    """Members side by side, every one of which learns from every reward, mixed by progressive validation.

        mean = Σ_j w_j a_j f_j(x),   width = σ Σ_j w_j a_j (width_j(x) + κ/√(1 + n_a)),
        w_j ∝ p_j exp(-s (E_j - min E) / (2σ²)),   σ² = min E/N,
        a_j = min(1, max(0, TOO_LARGE (Σ r f_j + TRUST) / (Σ f_j² + TRUST)))

    where E_j sums the squared errors of a_j f_j for predictions f_j that member j made when the arm was chosen, each
    round weighing ρ times the next, and N sums the weights. The fraction in a_j is the slope of the rewards r over
    these predictions: how much of what member j predicts comes true. Where noise is many times what contexts explain,
    every member that could learn anything predicts ten times too much, and one that sees nothing, and predicts nothing,
    errs least; shrunk they err nearly equally, and count by what they see. As a_j is the same for all arms, it is one
    more weight. Predictions are noted with the decision: where clicks are told at once and zeros later, many together,
    a member that forgets predicts the next reward to be told from the last ones, however poor its view of the arms. Of
    decisions that nothing was noted of, they are those made as the reward comes.

    p_j is 1, and 1/2 for a regression and for the same one that forgets: they share a place. With s = 1 and normal
    noise w_j are the members' posterior probabilities; a smaller s mixes more evenly. For the width σ, the error of
    the best member, is taken as at least LEAST_NOISE and at most 1, the deviation of the rewards.

    The last term, with n_a the plays of arm a, is only there where arms share a context: an arm that brought nothing in
    its first few plays is then told from the others by its own output weights alone, which the diagonal of Z, summed
    over a hundred of them, hardly does.

    Args:
        network_at: pull -> NeuralUCB's estimator with that pull to θ_0, and that ridge in Z_0; the pull is traced.
        pulls: λ_j, one per network.
        regressions: Ridge regressions, on the contexts or on other features of them; there may be none.
        forgetting: Each of them once more, forgetting what was long ago; or none. Their widths are those of the
            regressions that do not forget: what was once explored is not explored for ever again.
        discount: ρ.
        sharpness: s.
        arms: How many arms share a context; 0 if they do not.
        novelty: κ.

    Returns:
        The estimator, and what its policy notes of a decision. It costs what its members cost; the networks are lanes
        of one program.
    """
    models = (*regressions, *forgetting)
    members = len(pulls) + len(models)

    def stacked() -> jax.Array:
        return jnp.stack([jnp.asarray(pull, jnp.float32) for pull in pulls])

    def init(key: jax.Array) -> Mixture:
        key_networks, key_regressions = random.split(key)
        keys = random.split(key_networks, len(pulls))
        networks = jax.vmap(lambda pull, one: network_at(pull).init(one))(stacked(), keys)
        return Mixture(
            networks,
            tuple(each.init(key_regressions) for each in models),
            jnp.zeros(members, jnp.float32),
            jnp.zeros(members, jnp.float32),
            jnp.zeros(members, jnp.float32),
            jnp.zeros((), jnp.float32),
            jnp.zeros(arms, jnp.float32),
        )

    def predict(belief: Mixture, context: Context) -> Prediction:
        each, places = predict_each(belief, context), weights(belief, sharpness)
        shares = slopes(belief) * places
        noise = jnp.sqrt(jnp.clip(_least_error(belief), LEAST_NOISE**2, 1))
        width = shares @ each.width
        if arms:
            width += shares.sum() * jnp.asarray(novelty, jnp.float32) / jnp.sqrt(1 + belief.plays[context.arm])
        return Prediction(shares @ each.mean, noise * width, belief.networks.rounds[0], places @ each.log_det)

    def predict_each(belief: Mixture, context: Context) -> Prediction:
        """[members] of every field."""
        each = jax.vmap(lambda pull, one: network_at(pull).predict(one, context))(stacked(), belief.networks)
        others = [one.predict(its, context) for one, its in zip(models, belief.regressions, strict=True)]
        for index, lasting in enumerate(others[: len(forgetting)], len(regressions)):
            others[index] = others[index]._replace(width=lasting.width)
        return jax.tree.map(lambda leaf, *rest: jnp.concatenate([_single(one) for one in (leaf, *rest)]), each, *others)

    def take(belief: Mixture, contexts: Context, available: jax.Array, choice: Choice) -> jax.Array:
        """[1 + members] a 1, and what each predicted of the arm chosen.

        Of all arms, as `select` does: beside it in one program, XLA computes that once.
        """
        means = jax.vmap(lambda context: predict_each(belief, context).mean)(contexts)
        return jnp.concatenate([jnp.ones(1, jnp.float32), means[choice.arm]])

    def observe(belief: Mixture, noted: Noted, reward: jax.Array) -> Mixture:
        context = noted.context
        predicted = jnp.where(noted.note[0] > 0, noted.note[1:], predict_each(belief, context).mean)
        reward_now, fading = reward.astype(jnp.float32), jnp.asarray(discount, jnp.float32)
        missed = slopes(belief) * predicted - reward_now  # as the choice was made of it
        networks = jax.vmap(lambda pull, one: network_at(pull).observe(one, context, reward))(
            stacked(), belief.networks
        )
        others = tuple(one.observe(its, context, reward) for one, its in zip(models, belief.regressions, strict=True))
        plays = belief.plays.at[context.arm].add(1) if arms else belief.plays
        return Mixture(
            networks,
            others,
            fading * belief.errors + missed**2,
            fading * belief.products + predicted * reward_now,
            fading * belief.squares + predicted**2,
            fading * belief.validated + 1,
            plays,
        )

    def learn(key: jax.Array, belief: Mixture, history: History) -> tuple[Mixture, Info]:
        def one(pull: jax.Array, network: Neural) -> tuple[Neural, Info]:
            return network_at(pull).learn(key, network, history)

        networks, info = jax.vmap(one)(stacked(), belief.networks)
        shares = jax.nn.softmax(_log_weights(belief, sharpness)[: len(pulls)])  # beside a regression all may be 0
        loss = (shares.astype(info.loss.dtype) * info.loss).sum()
        # a member that failed kept its θ, and its errors will tell
        return belief._replace(networks=networks), Info(loss, info.diverged.all())

    def review(belief: Mixture, history: History, unit: Number = 1.0) -> Mixture:
        """Errors stay, in the new unit: predictions for rewards already seen would prove nothing."""

        def one(pull: jax.Array, network: Neural) -> Neural:
            return _review(network_at(pull), network, history)

        others = tuple(_review(one, its, history) for one, its in zip(models, belief.regressions, strict=True))
        size = jnp.asarray(unit, jnp.float32)
        return Mixture(
            jax.vmap(one)(stacked(), belief.networks),
            others,
            size**2 * belief.errors,
            size**2 * belief.products,
            size**2 * belief.squares,
            jnp.where(size > 0, belief.validated, 0),
            _count_plays(history, arms) if arms else belief.plays,
        )

    check = next(iter(regressions), network_at(1.0)).check
    return Estimator(init, predict, observe, learn, check, review), Note(1 + members, take)


def weights(belief: Mixture, sharpness: Number) -> jax.Array:
    """[members] w_j, the share of each: networks in order of their pulls, regressions, those that forget."""
    return jax.nn.softmax(_log_weights(belief, sharpness))


def slopes(belief: Mixture) -> jax.Array:
    """[members] a_j: 1, and less for those of whose predictions less than 1/TOO_LARGE comes true."""
    return jnp.clip(TOO_LARGE * (belief.products + TRUST) / (belief.squares + TRUST), 0, 1)


def _log_weights(belief: Mixture, sharpness: Number) -> jax.Array:
    excess = belief.errors - belief.errors.min()
    evidence = -jnp.asarray(sharpness, jnp.float32) * excess / (2 * _least_error(belief))
    pairs = sum(isinstance(each.z, Forgetting) for each in belief.regressions)
    single = jnp.arange(evidence.shape[0], dtype=jnp.int32) < evidence.shape[0] - 2 * pairs
    return jnp.where(single, evidence, evidence + jnp.log(jnp.float32(0.5)))


def _least_error(belief: Mixture) -> jax.Array:
    """The best member's mean squared error; 1, that of predicting the mean, before the first."""
    error = jnp.maximum(belief.errors.min() / jnp.maximum(belief.validated, 1), SMALLEST_ERROR)
    return jnp.where(belief.validated > 0, error, 1)


def _count_plays(history: History, arms: int) -> jax.Array:
    played = jnp.arange(history.rewards.shape[0], dtype=jnp.int32) < history.seen
    return jnp.zeros(arms, jnp.float32).at[history.contexts.arm].add(played.astype(jnp.float32))


def _single(leaf: jax.Array) -> jax.Array:
    return jnp.atleast_1d(leaf).astype(jnp.float32)


def _review(estimator: Estimator, belief: Any, history: History) -> Any:
    assert estimator.review is not None
    return estimator.review(belief, history)
