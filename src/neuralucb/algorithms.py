"""The algorithms by name: one short recipe each, with its citation, its settings and the paper's grid.

A recipe takes the dimension of a context and the settings by name; numbers among them may be traced.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax

from neuralucb.confidence import Assumptions, Confidence, constant, theoretical
from neuralucb.designs import Design, diagonal, full, none
from neuralucb.estimators import neural, ridge
from neuralucb.estimators.neural import STARTS
from neuralucb.networks import INITIALIZATIONS, SCALINGS, Network, mlp
from neuralucb.policy import Context, Policy, policy
from neuralucb.rules import epsilon_greedy, ucb
from neuralucb.settings import Setting, choice, flag, integer, number, read_settings, redefine, steps
from neuralucb.training import Train, gradient_descent, sgd

__all__ = ["ALGORITHMS", "Algorithm", "build", "find_algorithm"]

PRECISIONS = ("float32", "float64")
OPTIMIZERS = ("plain", "adam", "rmsprop", "adagrad")


class Algorithm(NamedTuple):
    """A recipe with all that a reader needs to trust it."""

    name: str
    summary: str
    citation: str
    departs: str
    settings: tuple[Setting, ...]
    recipe: Callable[[int, Mapping[str, Any]], Policy]
    check: Callable[[int, Mapping[str, Any]], None] = lambda dim, settings: None
    """Raises ValueError for settings that are each fine but do not go together."""


def build(name: str, *, dim: int, **settings: Any) -> Policy:
    """The named algorithm as a policy for contexts of `dim` numbers: `build("neural-ucb", dim=20, width=100)`."""
    algorithm = find_algorithm(name)
    values = read_settings(algorithm.settings, settings, of=name)
    algorithm.check(dim, values)
    return algorithm.recipe(dim, values)


def find_algorithm(name: str) -> Algorithm:
    """The algorithm of that name; an unknown one lists the known."""
    if name not in ALGORITHMS:
        raise ValueError(f"algorithm {name!r} is not known; known: {', '.join(ALGORITHMS)}.")
    return ALGORITHMS[name]


REGULARIZATION = number("regularization", "λ", 1.0, "ridge in Z_0 and pull towards θ_0", above=0, grid=(0.1, 1, 10))
EXPLORATION = number("exploration", "γ", 0.1, "scale of the confidence interval", least=0, grid=(0.01, 0.1, 1, 10))
EPSILON = number("epsilon", "ε", 0.01, "probability of a random arm", least=0, most=1, grid=(0.001, 0.01, 0.1, 0.2))

NETWORK = (
    integer("width", "m", 20, "hidden units a layer"),
    integer("depth", "L", 2, "layers", least=2),
    choice("initialization", "θ_0", "gaussian", "how the network starts", options=INITIALIZATIONS),
    choice("scaling", "", "tangent", "with the paper's factor √m, or standard", options=SCALINGS),
    flag("duplicate", "", False, "contexts become [x, x]/√2"),
    choice("network_precision", "", "float32", "of the network's numbers", options=PRECISIONS),
)

TRAINING = (
    number("step_size", "η", 0.01, "step of a training step", above=0, grid=(0.001, 0.01, 0.1)),
    steps("t"),
    choice("method", "TrainNN", "sgd", "minibatches, or Algorithm 2", options=("sgd", "gradient-descent")),
    integer("batch_size", "B", 50, "rows of a minibatch"),
    choice("start", "θ^(0)", "initial", "training starts at θ_0, or at the last θ", options=STARTS),
    choice("optimizer", "", "plain", "the step itself; others are optax's", options=OPTIMIZERS),
)

DESIGN = (
    choice("design", "Z", "full", "exact, or its diagonal alone", options=("full", "diagonal")),
    choice("design_precision", "", "float64", "of Z", options=PRECISIONS),
)

CONFIDENCE = (
    choice("confidence", "γ_t", "constant", "γ, or Algorithm 1's γ_t", options=("constant", "theoretical")),
    number("noise_bound", "ν", 1.0, "sub-Gaussian noise; for theoretical γ_t", above=0),
    number("failure", "δ", 0.1, "allowed failure; for theoretical γ_t", above=0, most=1),
    number("norm", "S", 1.0, "bound on the norm of h; for theoretical γ_t", least=0),
    number("constant_1", "C_1", 1.0, "of theoretical γ_t", least=0),
    number("constant_2", "C_2", 1.0, "of theoretical γ_t", least=0),
    number("constant_3", "C_3", 1.0, "of theoretical γ_t", least=0),
)


def neural_ucb(dim: int, settings: Mapping[str, Any]) -> Policy:
    """NeuralUCB: optimism over the gradients of a trained network (Zhou et al. 2020, Algorithm 1).

    A round costs O(p²) with full Z and O(Kp) with diagonal Z; a training J·B network evaluations.
    Departs from the paper in: `gaussian` θ_0 by default, for its lower regret; `paper` on request.
    """
    network = _network(dim, settings)
    estimator = neural(network, _design(network, settings), _training(settings), start=settings["start"])
    return policy(estimator, ucb(_confidence(settings)))


def neural_epsilon_greedy(dim: int, settings: Mapping[str, Any]) -> Policy:
    """Neural ε-greedy: NeuralUCB's network and training, ε-greedy choice (Zhou et al. 2020, Section 7).

    A round costs K network evaluations; a training as NeuralUCB's.
    Departs from the paper in: `gaussian` θ_0 by default, for its lower regret; `paper` on request.
    """
    estimator = neural(_network(dim, settings), none(), _training(settings), start=settings["start"])
    return policy(estimator, epsilon_greedy(settings["epsilon"]))


def lin_ucb(dim: int, settings: Mapping[str, Any]) -> Policy:
    """LinUCB: ridge regression and optimism (Li et al. 2010, with one model for all arms).

    A round costs O(K d²). Departs from the paper in nothing.
    """
    design = full(dim, ridge=settings["regularization"], dtype=settings["design_precision"])

    def check(context: Context) -> None:
        if getattr(context, "shape", None) != (dim,):
            raise ValueError(f"a context must be {dim} numbers, got {context}; `dim` is set to {dim}.")

    estimator = ridge(dim, design, features=lambda context: context, check=check)
    return policy(estimator, ucb(constant(settings["exploration"])))


def _network(dim: int, settings: Mapping[str, Any]) -> Network:
    shape = {name: settings[name] for name in ("width", "depth", "initialization", "scaling", "duplicate")}
    return mlp(dim, **shape, dtype=settings["network_precision"])


def _training(settings: Mapping[str, Any]) -> Train:
    # the pull is mλ in the paper's scaling, λ in the standard one
    factor = settings["width"] if settings["scaling"] == "tangent" else 1
    common = {name: settings[name] for name in ("step_size", "steps")} | {"pull": factor * settings["regularization"]}
    if settings["method"] == "gradient-descent":
        return gradient_descent(**common)
    return sgd(**common, batch_size=settings["batch_size"], optimizer=_optimizer(settings))


def _optimizer(settings: Mapping[str, Any]) -> Any:
    if settings["optimizer"] == "plain":
        return None
    import optax  # imported on request: the paper needs only the plain step

    return getattr(optax, settings["optimizer"])(settings["step_size"])


def _design(network: Network, settings: Mapping[str, Any]) -> Design:
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    common = {"ridge": settings["regularization"], "dtype": settings["design_precision"]}
    if settings["design"] == "full":
        return full(sum(leaf.size for leaf in jax.tree.leaves(shapes)), **common)
    return diagonal(shapes, **common)


def _confidence(settings: Mapping[str, Any]) -> Confidence:
    if settings["confidence"] == "constant":
        return constant(settings["exploration"])
    constants = (settings["constant_1"], settings["constant_2"], settings["constant_3"])
    assumed = Assumptions(settings["noise_bound"], settings["failure"], settings["norm"], constants)
    shape = {name: settings[name] for name in ("width", "depth", "step_size", "steps")}
    return theoretical(assumed, ridge=settings["regularization"], **shape)


def _check_neural(dim: int, settings: Mapping[str, Any]) -> None:
    _network(dim, settings)
    if settings["method"] == "gradient-descent" and settings["optimizer"] != "plain":
        raise ValueError(
            f"optimizer must be plain with method=gradient-descent, which is Algorithm 2 to the letter, "
            f"got {settings['optimizer']!r}; take method=sgd."
        )


def _check_neural_ucb(dim: int, settings: Mapping[str, Any]) -> None:
    _check_neural(dim, settings)
    product = settings["step_size"] * settings["width"] * settings["regularization"]
    if settings["confidence"] == "theoretical" and product > 1:
        raise ValueError(
            f"step_size · width · regularization (ηmλ) must be at most 1 with confidence=theoretical, whose γ_t has "
            f"the factor (1 - ηmλ)^(J/2), got {product:g}; take a smaller step_size."
        )


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm(
            "neural-ucb",
            "optimism over the gradients of a trained network",
            "Zhou, Li & Gu 2020, Algorithm 1",
            "a gaussian θ_0 by default; with initialization=paper in nothing",
            (EXPLORATION, REGULARIZATION, *TRAINING, *NETWORK, *DESIGN, *CONFIDENCE),
            neural_ucb,
            _check_neural_ucb,
        ),
        Algorithm(
            "neural-epsilon-greedy",
            "the same network and training, ε-greedy choice",
            "Zhou, Li & Gu 2020, Section 7",
            "a gaussian θ_0 by default; with initialization=paper in nothing",
            (EPSILON, REGULARIZATION, *TRAINING, *NETWORK),
            neural_epsilon_greedy,
            _check_neural,
        ),
        Algorithm(
            "lin-ucb",
            "ridge regression and optimism",
            "Li, Chu, Langford & Schapire 2010",
            "nothing",
            (
                *redefine((EXPLORATION,), exploration={"symbol": "α"}),
                *redefine((REGULARIZATION,), regularization={"meaning": "ridge in Z_0", "grid": ()}),
                DESIGN[1],
            ),
            lin_ucb,
        ),
    )
}
"""Add your own: `ALGORITHMS["mine"] = Algorithm(…)`, and every command and test knows it."""
