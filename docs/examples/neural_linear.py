"""NeuralLinear with Thompson sampling: Bayesian regression on a network's last layer (Riquelme et al. 2018)."""

import jax

from neuralucb.algorithms import register_algorithm
from neuralucb.algorithms.shared_settings import NETWORK, TRAINING, check_training, network_for, training_for
from neuralucb.confidence import constant
from neuralucb.estimators.features import exact_design, last_layer
from neuralucb.estimators.ridge import ridge
from neuralucb.policy import policy
from neuralucb.rules import thompson
from neuralucb.settings import number

SETTINGS = (
    number("exploration", "σ", 0.1, "deviation of the noise", least=0, grid=(0.03, 0.1, 0.3)),
    number("regularization", "λ", 1.0, "ridge of the regression, and pull to the last θ", above=0),
)


@register_algorithm(
    "my-neural-linear", settings=(*SETTINGS, *TRAINING, *NETWORK), citation="Riquelme, Tucker & Snoek 2018",
    departs="a known σ, and independent samples for arms with contexts of their own", check=check_training,
)  # fmt: skip
def neural_linear(task, settings):
    """Bayesian regression on the last layer of a trained network, Thompson sampling."""
    network, train = network_for(task, settings), training_for(task, settings)
    features = last_layer(network)
    linear = ridge(features, exact_design(features, ridge=settings["regularization"]))

    def learn(key, belief, history):
        """Train the network, then regress on its new features, from the first observation on."""
        params, info = train(key, network.apply_many, belief.params, belief.params, history)

        def add(row, now):
            return linear.observe(now, *jax.tree.map(lambda leaf: leaf[row], (history.contexts, history.rewards)))

        return jax.lax.fori_loop(0, history.seen, add, linear.init(key)._replace(params=params)), info

    return policy(linear._replace(learn=learn), thompson(constant(settings["exploration"])))
