"""Settings that several algorithms share, and the parts they build."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from neuralucb.algorithms.algorithm import Task, context_check
from neuralucb.algorithms.dense_networks import FRONTS, category_columns, check_fronts
from neuralucb.algorithms.networks import DEFAULT, NETWORK_BY_NAME, NamedNetwork, find_network, make_network
from neuralucb.confidence import Assumptions
from neuralucb.designs import (
    Design,
    block_diagonal,
    diagonal,
    dual,
    frequent_directions,
    full,
    kronecker,
    last_layer as last_layer_of_z,
    random_projection,
)
from neuralucb.estimators.features import (
    Features,
    exact_design,
    last_layer,
    raw,
    raw_by_arm,
    require_last_layer,
    tangent,
)
from neuralucb.estimators.kernel import kernel
from neuralucb.estimators.neural import STARTS
from neuralucb.estimators.ridge import ridge
from neuralucb.estimators.self_scaling import self_scaling
from neuralucb.gradients import dense, inner
from neuralucb.networks.encodings import ENCODINGS
from neuralucb.networks.mlp import INITIALIZATIONS, SCALINGS
from neuralucb.networks.network import Network
from neuralucb.policy import Estimator, Policy, guard
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import Number
from neuralucb.settings import Setting, choice, flag, integer, number, steps
from neuralucb.training import DECAYS, ROWS, Train, careful_sgd, gradient_descent, sgd

__all__ = [
    "ALPHA",
    "CONSTANTS",
    "DEPARTS",
    "DESIGN",
    "EPSILON",
    "EXPLORATION",
    "GAUSSIAN_NETWORK",
    "NETWORK",
    "PAPER",
    "PRECISION",
    "PULL",
    "RADIUS",
    "REGULARIZATION",
    "RIDGE",
    "TRAINING",
    "as_in_paper",
    "assumptions",
    "check_last_layer",
    "check_network",
    "check_training",
    "design_for",
    "in_units",
    "last_layer_for",
    "linear_design",
    "linear_features",
    "network_for",
    "precision_of",
    "tangent_ridge",
    "training_for",
]

DEPARTS = "a gaussian θ_0 by default, where the text has two halves (initialization=paper)"
"""Where the algorithms that train a network depart from the paper."""

PRECISIONS = ("float32", "float64")


UNITS = ("learned", "given")


MANY = 64
"""Inputs beyond which steps are shorter: each weight moves by about η, and sums of many inputs by that much more."""


OPTIMIZERS = ("plain", "adam", "rmsprop", "adagrad")


REGULARIZATION = number("regularization", "λ", 3.0, "ridge in Z_0 and pull to θ_0", above=0, grid=(0.1, 1, 10))


PULL = REGULARIZATION._replace(meaning="pull to θ_0")


RIDGE = REGULARIZATION._replace(default=1.0, meaning="ridge in Z_0")


EXPLORATION = number("exploration", "γ", 0.1, "scale of the interval", least=0, grid=(0.01, 0.1, 1, 10))


ALPHA = EXPLORATION._replace(symbol="α")


EPSILON = number("epsilon", "ε", 0.01, "probability of a random arm", least=0, most=1, grid=(0.001, 0.01, 0.1, 0.2))


NETWORK = (
    NETWORK_BY_NAME,
    integer("width", "m", 128, "hidden units per layer"),
    integer("depth", "L", 3, "layers", least=2),
    choice("initialization", "θ_0", "symmetric", "how the network starts", options=INITIALIZATIONS),
    choice("scaling", "", "standard", "with the paper's factor √m (tangent), or standard", options=SCALINGS),
    flag("duplicate", "", False, "contexts become [x, x]/√2"),
    flag("biases", "", False, "each layer sees a 1 beside its inputs"),
    choice("encoding", "", "heads", "of shared contexts and arms", options=ENCODINGS),
    choice("network_precision", "", "float32", "of the network's numbers", options=PRECISIONS),
    *FRONTS,
)
"""By default what works on data in any units; the paper's values are `experiments.presets.PAPER`."""


GAUSSIAN_NETWORK = tuple(
    setting._replace(default="gaussian") if setting.name == "initialization" else setting for setting in NETWORK
)
"""For networks that should differ from each other at the start, or of which only the lower layers are trained: halves
that cancel would do neither."""


TRAINING = (
    number("step_size", "η", 0.004, "size of a training step", above=0, grid=(0.001, 0.01, 0.1)),
    steps(300),
    choice("method", "TrainNN", "sgd", "minibatches, or Algorithm 2", options=("sgd", "gradient-descent")),
    integer("batch_size", "B", 64, "rows of a minibatch"),
    choice("start", "θ^(0)", "warm", "training starts at θ_0, or at the last θ", options=STARTS),
    choice("optimizer", "", "adam", "the step itself; plain, or optax's", options=OPTIMIZERS),
    choice("decay", "", "linear", "of the step within one training", options=DECAYS),
    choice("rows", "", "drawn", "of minibatches: drawn with replacement, or in shuffled passes", options=ROWS),
    number("early_end", "", 0.0, "with rows=passes: mean squared error of a pass that ends a training", least=0),
    integer("retries", "", 2, "trainings with shorter steps after one that made the fit worse", least=0),
    choice("units", "", "learned", "of contexts and rewards: learned as they come, or as given", options=UNITS),
)


PRECISION = choice(
    "design_precision",
    "",
    "auto",
    "of Z; auto: float32 if diagonal, else float64",
    options=("auto", *PRECISIONS),
)


DESIGNS = (
    "full",
    "diagonal",
    "last-layer",
    "block-diagonal",
    "kronecker",
    "frequent-directions",
    "random-projection",
    "dual",
)


DESIGN = (
    choice("design", "Z", "diagonal", "exact (full), its diagonal alone, or another approximation", options=DESIGNS),
    PRECISION,
    integer(
        "design_size",
        "",
        128,
        "at most: rank of frequent-directions, dimensions of random-projection, observations of dual",
    ),
)


RADIUS = (
    number("noise_bound", "ν", 1.0, "sub-Gaussian noise", above=0, grid=(0.1, 1, 10)),
    number("failure", "δ", 0.1, "allowed failure", above=0, most=1, grid=(0.01, 0.1, 1)),
    number("norm", "S", 1.0, "bound on the norm of h", least=0, grid=(0.01, 0.1, 1, 10)),
)


CONSTANTS = tuple(number(f"constant_{i}", f"C_{i}", 1.0, "of theoretical γ_t", least=0) for i in (1, 2, 3))


PAPER: dict[str, Any] = {
    "regularization": 1.0,
    "width": 20,
    "depth": 2,
    "initialization": "gaussian",
    "scaling": "tangent",
    "encoding": "disjoint",
    "step_size": 0.05,
    "steps": "t",
    "batch_size": 50,
    "start": "initial",
    "optimizer": "plain",
    "decay": "none",
    "retries": 0,
    "units": "given",
    "design": "full",
}
"""The paper's protocol, where our defaults differ from it."""


def as_in_paper(settings: Sequence[Setting]) -> tuple[Setting, ...]:
    """The settings with the paper's values as defaults: for algorithms that train nothing."""
    return tuple(setting._replace(default=PAPER.get(setting.name, setting.default)) for setting in settings)


def network_for(task: Task, settings: Mapping[str, Any]) -> Network:
    """The network of these settings, for contexts of this task."""
    return make_network(settings.get("network", DEFAULT), task, settings)


def training_for(task: Task, settings: Mapping[str, Any]) -> Train:
    """TrainNN of these settings. The pull is mλ in the paper's scaling, else λ, also for networks without its √m.

    In learned units steps are shorter for contexts of more than MANY inputs, by the root of how many times more.
    """
    factor = settings["width"] if _named(settings).dense and settings["scaling"] == "tangent" else 1
    shorter = min(1.0, (MANY / task.dim) ** 0.5) if settings["units"] == "learned" else 1.0
    step_size = shorter * settings["step_size"]
    common = {"step_size": step_size, "steps": settings["steps"], "pull": factor * settings["regularization"]}
    if settings["method"] == "gradient-descent":
        return gradient_descent(**common)
    common |= {name: settings[name] for name in ("batch_size", "decay", "rows", "early_end")}
    optimizer = _optimizer(settings)
    if settings["retries"]:
        return careful_sgd(**common, optimizer=optimizer, retries=settings["retries"])
    return sgd(**common, optimizer=None if optimizer is None else optimizer(step_size))


def in_units(task: Task, settings: Mapping[str, Any], make: Callable[[Task], Policy]) -> Policy:
    """The policy that `make` makes, its input checked; in learned units it is shown scaled contexts and rewards.

    Args:
        task: What the policy is for.
        settings: Those that a policy which trains a network has.
        make: task -> the bare policy; in learned units the contexts of its task have a 1 more, if the network takes it.
    """
    check = context_check(task)
    if settings["units"] == "given":
        return guard(make(task)._replace(review=None), check)
    intercept = _named(settings).intercept
    inner_policy = make(task._replace(dim=task.dim + intercept))
    codes = category_columns(settings)
    return guard(self_scaling(inner_policy, task.dim, intercept=intercept, as_given=codes), check)


def design_for(network: Network, settings: Mapping[str, Any]) -> Design:
    """Z over the network's parameters."""
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    like = jax.eval_shape(network.tangent, shapes, network.example)[1]
    total, most = jax.eval_shape(dense, like).size, settings["design_size"]
    common = {"ridge": settings["regularization"], "dtype": precision_of(settings)}
    match settings["design"]:
        case "full":
            return full(total, **common)
        case "frequent-directions":
            return frequent_directions(like, rank=min(most, total), **common)
        case "random-projection":
            return random_projection(like, size=min(most, total), orthogonal=most >= total, **common)
        case "dual":
            return dual(like, window=most, **common)
        case name:
            by_name = {"last-layer": last_layer_of_z, "block-diagonal": block_diagonal, "kronecker": kronecker}
            return diagonal(shapes, **common) if name == "diagonal" else by_name[name](like, **common)


def precision_of(settings: Mapping[str, Any]) -> str:
    """The precision of Z."""
    if settings["design_precision"] != "auto":
        return str(settings["design_precision"])
    return "float32" if settings.get("design") == "diagonal" else "float64"


def assumptions(settings: Mapping[str, Any]) -> Assumptions:
    """ν, δ, S and, where the algorithm has them, C_1 to C_3."""
    c1, c2, c3 = (settings.get(name.name, name.default) for name in CONSTANTS)
    return Assumptions(settings["noise_bound"], settings["failure"], settings["norm"], (c1, c2, c3))


def linear_features(task: Task) -> Features:
    """The context itself; for shared contexts (0, …, x, …, 0)."""
    return raw(task.dim) if task.shared_by is None else raw_by_arm(task.dim, task.shared_by)


def linear_design(task: Task, settings: Mapping[str, Any]) -> Design:
    """The exact Z of linear features; for shared contexts it is block-diagonal, with one block per arm."""
    return exact_design(linear_features(task), ridge=settings["regularization"], dtype=precision_of(settings))


def tangent_ridge(task: Task, settings: Mapping[str, Any]) -> Estimator:
    """Ridge on tangent features: p × p, or the same numbers from T × T where rounds are fewer than parameters."""
    network = network_for(task, settings)
    features = tangent(network)
    if settings["design"] == "full" and task.rounds is not None and task.rounds < features.size:
        common = {"ridge": settings["regularization"], "dtype": precision_of(settings)}
        return kernel(features, inner, capacity=task.rounds, **common)
    return ridge(features, design_for(network, settings))


def last_layer_for(task: Task, settings: Mapping[str, Any]) -> tuple[Network, Features, Design]:
    """The network, its last hidden layer as features, and the exact Z over them, one per arm where arms have heads."""
    network = network_for(task, settings)
    features = last_layer(network)
    return network, features, exact_design(features, ridge=settings["regularization"], dtype=precision_of(settings))


def check_last_layer(task: Task, settings: Mapping[str, Any]) -> None:
    """`check_training`, and refuse a network that does not tell its last hidden layer."""
    check_training(task, settings)
    require_last_layer(network_for(task, settings))


def check_network(task: Task, settings: Mapping[str, Any]) -> None:
    """Refuse a network that cannot be built for this task, and what only the paper's or another one has."""
    network_for(task, settings)
    check_fronts(settings)
    named = _named(settings)
    for name, only, has in (
        ("network_precision", "float32", named.dense),
        ("confidence", "constant", named.name == DEFAULT),
    ):
        if not has and settings.get(name, only) != only:
            raise InputError(
                f"{name} must be {only} with network={settings['network']}, got {settings[name]!r}; take network=mlp."
            )


def check_training(task: Task, settings: Mapping[str, Any]) -> None:
    """Refuse a network that cannot be built for this task, and what Algorithm 2 does not have."""
    check_network(task, settings)
    if settings["early_end"] and settings["rows"] != "passes":
        raise InputError(
            f"early_end must be 0 with rows={settings['rows']}, got {settings['early_end']:g}; take rows=passes, "
            "after each of which a training may end."
        )
    for name, only in (("optimizer", "plain"), ("decay", "none"), ("retries", 0), ("rows", "drawn")):
        if settings["method"] == "gradient-descent" and settings[name] != only:
            raise InputError(
                f"{name} must be {only} with method=gradient-descent, which is Algorithm 2 to the letter, "
                f"got {settings[name]!r}; take method=sgd."
            )


def _named(settings: Mapping[str, Any]) -> NamedNetwork:
    return find_network(settings.get("network", DEFAULT))


def _optimizer(settings: Mapping[str, Any]) -> Callable[[Number], Any] | None:
    """step size -> the optimizer"""
    if settings["optimizer"] == "plain":
        return None
    import optax  # imported on request: the paper needs only the plain step

    make = getattr(optax, settings["optimizer"])
    return lambda step_size: make(jnp.asarray(step_size, settings["network_precision"]))
