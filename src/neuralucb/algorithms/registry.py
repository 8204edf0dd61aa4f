"""The algorithms by name. `register_algorithm("mine")(recipe)` adds one, and every command and test knows it."""

import copyreg
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from numbers import Integral
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Recipe, Task
from neuralucb.algorithms.banditron import BANDITRON
from neuralucb.algorithms.baselines import ORACLE, UNIFORM
from neuralucb.algorithms.bbq import BBQ
from neuralucb.algorithms.bdqn import BDQN
from neuralucb.algorithms.bootstrapped_nn import BOOTSTRAPPED_NN
from neuralucb.algorithms.deep_ensemble import DEEP_ENSEMBLE
from neuralucb.algorithms.ee_net import EE_NET
from neuralucb.algorithms.epoch_greedy import EPOCH_GREEDY
from neuralucb.algorithms.exp4 import EXP4
from neuralucb.algorithms.glm_ucb import GLM_UCB
from neuralucb.algorithms.gloc import GLOC
from neuralucb.algorithms.gp_ucb import GP_UCB
from neuralucb.algorithms.kernel_ucb import KERNEL_UCB
from neuralucb.algorithms.lin_ts import LIN_TS
from neuralucb.algorithms.lin_ucb import LIN_UCB
from neuralucb.algorithms.neural_bandit import NEURAL_BANDIT
from neuralucb.algorithms.neural_epsilon_greedy import NEURAL_EPSILON_GREEDY
from neuralucb.algorithms.neural_epsilon_greedy0 import NEURAL_EPSILON_GREEDY0
from neuralucb.algorithms.neural_lin_ucb import NEURAL_LIN_UCB
from neuralucb.algorithms.neural_linear import NEURAL_LINEAR
from neuralucb.algorithms.neural_linear_lm import NEURAL_LINEAR_LM
from neuralucb.algorithms.neural_mix import NEURAL_MIX
from neuralucb.algorithms.neural_perturbed import NEURAL_PERTURBED
from neuralucb.algorithms.neural_perturbed_history import NEURAL_PERTURBED_HISTORY
from neuralucb.algorithms.neural_square_cb import NEURAL_SQUARE_CB
from neuralucb.algorithms.neural_ts import NEURAL_TS
from neuralucb.algorithms.neural_ucb import NEURAL_UCB
from neuralucb.algorithms.neural_ucb0 import NEURAL_UCB0
from neuralucb.algorithms.neural_variance_lin_ucb import NEURAL_VARIANCE_LIN_UCB
from neuralucb.algorithms.online_cover import ONLINE_COVER
from neuralucb.algorithms.perturbed_history import PERTURBED_HISTORY
from neuralucb.algorithms.ucb_glm import UCB_GLM
from neuralucb.policy import Origin, Policy
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import exact
from neuralucb.runtime.registry import Registry, check_call, first_line
from neuralucb.settings import Setting, check_integer, check_settings, read_settings

__all__ = ["ALGORITHMS", "BEFORE", "build", "find_algorithm", "rebuild", "register_algorithm"]

ARGUMENTS = (
    "name",
    "algorithm",
    "problem",
    "dim",
    "rounds",
    "shared_by",
    "seeds",
    "preset",
    "schedule",
    "progress",
    "trace",
)
"""Names of arguments of `build` and `run`, which a setting cannot have."""

BEFORE: dict[str, Any] = {
    "network": "mlp",
    "retries": 0,
    "units": "given",
    "design_size": 128,
    "categories": "",
    "embedding_size": 4,
    "image": "auto",
    "recent": 0,
    "rows": "drawn",
    "early_end": 0.0,
}
"""What files without these settings mean, such as those of version 0.1; an origin leaves them out where they are so."""


def _check(name: str, algorithm: Algorithm) -> None:
    what = f"algorithm {name!r}"
    if algorithm.name != name:
        raise InputError(f"{what} must be registered under its name, {algorithm.name!r}.")
    check_call(f"the recipe of {what}", algorithm.recipe, "(task, settings)", ("task", "settings"))
    check_call(f"the check of {what}", algorithm.check, "(task, settings)", ("task", "settings"))
    check_settings(what, algorithm.settings, reserved=ARGUMENTS)


ALGORITHMS: Registry[Algorithm] = Registry("algorithm", Algorithm, _check, lambda algorithm: algorithm.recipe)
"""Every algorithm that is known by name.

Example:
    >>> ALGORITHMS["lin-ucb"].title
    'LinUCB'
"""
for _algorithm in (
    NEURAL_MIX,
    NEURAL_UCB,
    NEURAL_EPSILON_GREEDY,
    NEURAL_UCB0,
    NEURAL_EPSILON_GREEDY0,
    BOOTSTRAPPED_NN,
    LIN_UCB,
    GLM_UCB,
    KERNEL_UCB,
    PERTURBED_HISTORY,
    LIN_TS,
    UCB_GLM,
    GLOC,
    GP_UCB,
    EPOCH_GREEDY,
    BANDITRON,
    ONLINE_COVER,
    EXP4,
    NEURAL_LINEAR,
    NEURAL_LINEAR_LM,
    NEURAL_BANDIT,
    BBQ,
    BDQN,
    NEURAL_PERTURBED_HISTORY,
    NEURAL_TS,
    NEURAL_SQUARE_CB,
    NEURAL_LIN_UCB,
    EE_NET,
    NEURAL_PERTURBED,
    DEEP_ENSEMBLE,
    NEURAL_VARIANCE_LIN_UCB,
    UNIFORM,
    ORACLE,
):
    ALGORITHMS[_algorithm.name] = _algorithm


def build(
    name: str = "neural-mix", *, dim: int, rounds: int | None = None, shared_by: int | None = None, **settings: Any
) -> Policy:
    """Make the named algorithm, with these settings, as a policy for contexts of `dim` numbers.

    Args:
        name: One of `ALGORITHMS`, such as "neural-ucb"; by default NeuralMix, which needs no tuning.
        dim: d, the numbers in a context.
        rounds: T, if it is known. Algorithms that gain from it use it, and must then not be played longer.
        shared_by: The number of arms, if they share one context; contexts are then `Slot(x, arm)`.
        settings: Settings of the algorithm by name; `neuralucb list NAME` shows them with their defaults.

    Returns:
        The policy. The same arguments give a policy whose compiled programs are used again.

    Raises:
        InputError: For an unknown algorithm or setting, and for values that are not allowed or do not go together.

    Example:
        >>> import jax, numpy as np
        >>> policy = build("neural-ucb", dim=4, width=8)
        >>> belief = policy.init(jax.random.key(0))
        >>> choice = policy.select(jax.random.key(1), belief, np.ones((3, 4), np.float32))
        >>> choice.score.shape
        (3,)
    """
    algorithm = find_algorithm(name)
    values = read_settings(algorithm.settings, settings, of=name)
    if not isinstance(dim, Integral) or dim < 1:
        raise InputError(f"dim must be a whole number of at least 1, got {dim!r}.")
    if rounds is not None:
        rounds = check_integer("rounds", rounds, 1)
    if shared_by is not None:
        shared_by = check_integer("shared_by", shared_by, 1)
    task = Task(int(dim), rounds, shared_by)
    algorithm.check(task, values)
    chosen = tuple(values.items())
    kept = tuple(item for item in chosen if item not in BEFORE.items())
    return _make(algorithm, task, chosen)._replace(origin=Origin(name, *task, kept))


def register_algorithm(
    name: str,
    *,
    settings: Sequence[Setting] = (),
    summary: str = "",
    citation: str = "",
    departs: str = "nothing",
    title: str = "",
    check: Callable[[Task, Mapping[str, Any]], None] | None = None,
) -> Callable[[Recipe], Recipe]:
    """Make an algorithm known by name, to `build`, `run`, sweeps and every command.

    Args:
        name: A new name, such as "neural-linear".
        settings: Its settings, made by `number`, `integer`, `choice` and `flag` of `neuralucb.settings`; those that
            several algorithms share are in `neuralucb.algorithms.shared_settings`.
        summary: One line for `neuralucb list`; if not set, the first line of the recipe's docstring.
        citation: The paper.
        departs: Where it departs from the paper, after "Departs from the paper in".
        title: What tables and figures call it, such as "NeuralLinear"; if not set, its name.
        check: (task, settings) -> raises InputError for settings that do not go together.

    Returns:
        A decorator for the recipe, a function (task, settings) that returns a `Policy`. Numbers among the settings may
        be traced, so that a recipe must not branch on them.

    Raises:
        InputError: If the name is taken or not one word, a setting cannot be used, or the recipe does not take
            (task, settings).

    Example:
        >>> from neuralucb.algorithms import build, find_algorithm
        >>> @register_algorithm("example-uniform", summary="as uniform as can be")
        ... def example(task, settings):
        ...     return build("uniform", dim=task.dim, shared_by=task.shared_by)
        >>> find_algorithm("example-uniform").summary
        'as uniform as can be'
        >>> del ALGORITHMS["example-uniform"]
    """

    def register(recipe: Recipe) -> Recipe:
        check_call(f"the recipe of algorithm {name!r}", recipe, "(task, settings)", ("task", "settings"))

        @wraps(recipe)
        def checked(task: Task, values: Mapping[str, Any]) -> Policy:
            made = recipe(task, values)
            if not isinstance(made, Policy):
                raise InputError(f"the recipe of algorithm {name!r} must return a Policy, got {made!r:.80}.")
            return made

        words = (summary or first_line(recipe), citation, departs)
        made = Algorithm(name, *words, tuple(settings), checked, title=title)
        ALGORITHMS[name] = made if check is None else made._replace(check=check)
        return recipe

    return register


def find_algorithm(name: str) -> Algorithm:
    """Look up an algorithm by its name.

    Args:
        name: One of `ALGORITHMS`.

    Returns:
        Its recipe, settings and citation.

    Raises:
        InputError: If there is none of that name; the message lists those that exist, and where they were looked for.

    Example:
        >>> find_algorithm("lin-ucb").summary
        'ridge regression and optimism'
    """
    return ALGORITHMS.find(name)


def rebuild(origin: Origin) -> Policy:
    """The policy that `build` made, once more, from what it remembers of its making.

    Args:
        origin: `policy.origin`; all of it are plain values, which can be stored or sent to another process.

    Returns:
        A policy equal to the first: in the same process both share their compiled programs.

    Raises:
        InputError: If this process does not know the algorithm, or it no longer has such a setting.

    Example:
        >>> policy = build("lin-ucb", dim=3)
        >>> rebuild(policy.origin) == policy
        True
    """
    algorithm, dim, rounds, shared_by, settings = origin
    known = {setting.name for setting in find_algorithm(algorithm).settings}
    before = {name: value for name, value in BEFORE.items() if name in known}
    return build(algorithm, dim=dim, rounds=rounds, shared_by=shared_by, **before | dict(settings))


def _reduce(policy: Policy) -> tuple[Callable[[Origin], Policy], tuple[Origin]]:
    """For pickle: a policy is its origin."""
    if policy.origin is None:
        return policy.__reduce__()  # raises, and says why
    return rebuild, (policy.origin,)


copyreg.pickle(Policy, _reduce)


@lru_cache(maxsize=64)
def _make(algorithm: Algorithm, task: Task, settings: tuple[tuple[str, Any], ...]) -> Policy:
    """One policy for the same arguments, so that what was compiled for it is used again.

    A recipe may look at the shapes of its network, which JAX would make float32 while its 64-bit types are off.
    """
    return exact(algorithm.recipe)(task, dict(settings))
