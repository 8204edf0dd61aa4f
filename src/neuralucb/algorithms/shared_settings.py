"""Settings that several algorithms share, and the parts they build."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from neuralucb.algorithms.algorithm import Task
from neuralucb.confidence import Assumptions
from neuralucb.designs import Design, diagonal, full
from neuralucb.estimators.neural import STARTS
from neuralucb.networks.encodings import ENCODINGS, concat, disjoint, heads
from neuralucb.networks.mlp import INITIALIZATIONS, SCALINGS, mlp
from neuralucb.networks.network import Network
from neuralucb.runtime.errors import InputError
from neuralucb.settings import choice, flag, integer, number, steps
from neuralucb.training import DECAYS, Train, gradient_descent, sgd

__all__ = [
    "CONSTANTS",
    "DESIGN",
    "EPSILON",
    "EXPLORATION",
    "NETWORK",
    "RADIUS",
    "REGULARIZATION",
    "TRAINING",
    "assumptions",
    "check_training",
    "design_for",
    "network_for",
    "precision_of",
    "training_for",
]

PRECISIONS = ("float32", "float64")


OPTIMIZERS = ("plain", "adam", "rmsprop", "adagrad")


REGULARIZATION = number("regularization", "λ", 1.0, "ridge in Z_0 and pull to θ_0", above=0, grid=(0.1, 1, 10))


EXPLORATION = number("exploration", "γ", 0.1, "scale of the interval", least=0, grid=(0.01, 0.1, 1, 10))


EPSILON = number("epsilon", "ε", 0.01, "probability of a random arm", least=0, most=1, grid=(0.001, 0.01, 0.1, 0.2))


NETWORK = (
    integer("width", "m", 20, "hidden units a layer"),
    integer("depth", "L", 2, "layers", least=2),
    choice("initialization", "θ_0", "gaussian", "how the network starts", options=INITIALIZATIONS),
    choice("scaling", "", "tangent", "with the paper's factor √m, or standard", options=SCALINGS),
    flag("duplicate", "", False, "contexts become [x, x]/√2"),
    flag("biases", "", False, "each layer sees a 1 beside its inputs"),
    choice("encoding", "", "disjoint", "of shared contexts and arms", options=ENCODINGS),
    choice("network_precision", "", "float32", "of the network's numbers", options=PRECISIONS),
)


TRAINING = (
    number("step_size", "η", 0.05, "step of a training step", above=0, grid=(0.001, 0.01, 0.1)),
    steps("t"),
    choice("method", "TrainNN", "sgd", "minibatches, or Algorithm 2", options=("sgd", "gradient-descent")),
    integer("batch_size", "B", 50, "rows of a minibatch"),
    choice("start", "θ^(0)", "initial", "training starts at θ_0, or at the last θ", options=STARTS),
    choice("optimizer", "", "plain", "the step itself; others are optax's", options=OPTIMIZERS),
    choice("decay", "", "none", "of the step within one training", options=DECAYS),
)


DESIGN = (
    choice("design", "Z", "full", "exact, or its diagonal alone", options=("full", "diagonal")),
    choice(
        "design_precision",
        "",
        "auto",
        "of Z; auto: float64 if full, float32 if diagonal",
        options=("auto", *PRECISIONS),
    ),
)


RADIUS = (
    number("noise_bound", "ν", 1.0, "sub-Gaussian noise", above=0, grid=(0.1, 1, 10)),
    number("failure", "δ", 0.1, "allowed failure", above=0, most=1, grid=(0.01, 0.1, 1)),
    number("norm", "S", 1.0, "bound on the norm of h", least=0, grid=(0.01, 0.1, 1, 10)),
)


CONSTANTS = tuple(number(f"constant_{i}", f"C_{i}", 1.0, "of theoretical γ_t", least=0) for i in (1, 2, 3))


def network_for(task: Task, settings: Mapping[str, Any]) -> Network:
    """The network of these settings, for contexts of this task."""
    shape = {name: settings[name] for name in ("width", "depth", "initialization", "scaling", "duplicate", "biases")}
    arms, encode = task.shared_by, {"disjoint": disjoint, "heads": heads, "concat": concat}[settings["encoding"]]
    dim = task.dim + (arms if arms is not None and settings["encoding"] == "concat" else 0)
    padded = task.dim * arms if arms is not None and settings["encoding"] == "disjoint" else None
    network = mlp(dim, **shape, fan_in=padded, dtype=settings["network_precision"])
    return network if arms is None else encode(network, arms)


def training_for(settings: Mapping[str, Any]) -> Train:
    """TrainNN of these settings. The pull is mλ in the paper's scaling, λ in the standard one."""
    factor = settings["width"] if settings["scaling"] == "tangent" else 1
    common = {name: settings[name] for name in ("step_size", "steps")} | {"pull": factor * settings["regularization"]}
    if settings["method"] == "gradient-descent":
        return gradient_descent(**common)
    return sgd(**common, batch_size=settings["batch_size"], optimizer=_optimizer(settings), decay=settings["decay"])


def design_for(network: Network, settings: Mapping[str, Any]) -> Design:
    """Z over the network's parameters."""
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    common = {"ridge": settings["regularization"], "dtype": precision_of(settings)}
    if settings["design"] == "full":
        return full(sum(leaf.size for leaf in jax.tree.leaves(shapes)), **common)
    return diagonal(shapes, **common)


def precision_of(settings: Mapping[str, Any]) -> str:
    """The precision of Z."""
    if settings["design_precision"] != "auto":
        return str(settings["design_precision"])
    return "float32" if settings.get("design") == "diagonal" else "float64"


def assumptions(settings: Mapping[str, Any]) -> Assumptions:
    """ν, δ, S and, where the algorithm has them, C_1 to C_3."""
    c1, c2, c3 = (settings.get(name.name, name.default) for name in CONSTANTS)
    return Assumptions(settings["noise_bound"], settings["failure"], settings["norm"], (c1, c2, c3))


def check_training(settings: Mapping[str, Any]) -> None:
    """Refuse what Algorithm 2 does not have."""
    for name, usual in (("optimizer", "plain"), ("decay", "none")):
        if settings["method"] == "gradient-descent" and settings[name] != usual:
            raise InputError(
                f"{name} must be {usual} with method=gradient-descent, which is Algorithm 2 to the letter, "
                f"got {settings[name]!r}; take method=sgd."
            )


def _optimizer(settings: Mapping[str, Any]) -> Any:
    if settings["optimizer"] == "plain":
        return None
    import optax  # imported on request: the paper needs only the plain step

    return getattr(optax, settings["optimizer"])(jnp.asarray(settings["step_size"], settings["network_precision"]))
