"""A regression on the last hidden layer of a trained network: NeuralLinear and its kin, by their differences."""

from typing import Any, Literal, NamedTuple

import jax

from neuralucb.estimators.features import Features
from neuralucb.gradients import dense
from neuralucb.history import History
from neuralucb.networks.network import Network
from neuralucb.policy import Belief, Context, Estimator, Info, Prediction
from neuralucb.runtime.precision import Number
from neuralucb.training import Train

__all__ = ["LastLayer", "last_layer_regression"]


class LastLayer(NamedTuple):
    """The regression, which has the network's θ_t as the parameters of its features; and θ_0."""

    regression: Any
    initial: Any

    @property
    def params(self) -> Any:
        """θ_t."""
        return self.regression.params


def last_layer_regression(
    network: Network,
    features: Features,
    linear: Estimator,
    train: Train,
    *,
    start: Literal["initial", "warm"] = "initial",
    shallow: bool = False,
    recomputes: bool = True,
    waits: bool = False,
) -> Estimator:
    """Mean and width of a regression on features that a network learns.

    Args:
        network: Whose last hidden layer the features are.
        features: `features.last_layer` of it.
        linear: A regression on them with `review`, such as `ridge`; its belief has `params` and `coefficients`.
        train: TrainNN.
        start: Where TrainNN begins: at θ_0, or at the last θ.
        shallow: Whether only the layers below the last are trained, under the regression's coefficients, computed at
            the θ before; otherwise the network is trained whole, and its output layer is not used.
        recomputes: Whether the regression is computed anew on the features of the new θ; otherwise it keeps the sums
            over features as they were when each was observed.
        waits: Whether the regression learns only then, from the history, and not from every reward.

    Returns:
        The estimator. A round costs what the regression costs, and K evaluations of the network.
    """
    assert linear.review is not None
    review_linear = linear.review

    def init(key: jax.Array) -> LastLayer:
        regression = linear.init(key)
        return LastLayer(regression, regression.params)

    def predict(belief: LastLayer, context: Context) -> Prediction:
        return linear.predict(belief.regression, context)

    def observe(belief: LastLayer, context: Context, reward: jax.Array) -> LastLayer:
        if waits:
            return belief._replace(regression=belief.regression._replace(rounds=belief.regression.rounds + 1))
        return belief._replace(regression=linear.observe(belief.regression, context, reward))

    def learn(key: jax.Array, belief: LastLayer, history: History) -> tuple[LastLayer, Info]:
        begin = belief.initial if start == "initial" else belief.params
        apply = under(review_linear(belief.regression, history).coefficients) if shallow else network.apply_many
        params, info = train(key, apply, begin, belief.initial, history)
        regression = belief.regression._replace(params=params)
        if recomputes:
            regression = review_linear(regression, history)
        return belief._replace(regression=regression), info

    def under(coefficients: jax.Array) -> Any:
        """θ, x of many rows -> φ(x; θ)ᵀ coefficients."""

        def apply_many(params: Any, contexts: Context) -> jax.Array:
            phi = jax.vmap(lambda one: dense(features.apply(params, one)))(contexts)
            return phi @ coefficients.astype(phi.dtype)

        return apply_many

    def review(belief: Belief, history: History, unit: Number = 1.0) -> LastLayer:
        return belief._replace(regression=review_linear(belief.regression, history))

    return Estimator(init, predict, observe, learn, network.check, review)
