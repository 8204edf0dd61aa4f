"""What the tests of `networks` share."""

import jax
import numpy as np

from neuralucb.gradients import dense


def compiled(network):
    """The same functions as one program each; called as they are, every operation would be a program of its own.

    Of many rows, `many` is one: training looks at what `apply_many` is.
    """
    given = {verb: getattr(network, verb) for verb in ("init", "apply", "tangent", "last_layer")}
    return network._replace(**{verb: function and jax.jit(function) for verb, function in given.items()})


def many(network, params, rows):
    """f of many rows, in NumPy."""
    return np.asarray(jax.jit(lambda *given: network.apply_many(*given))(params, rows))


def gradients(network, params, x):
    """(f, g/√m as one vector, JAX's own gradient of f as one vector), computed by one program."""

    @jax.jit
    def both(params, x):
        value, gradient = network.tangent(params, x)
        return value, dense(gradient), dense(jax.grad(network.apply)(params, x))

    return jax.tree.map(np.asarray, both(params, x))
