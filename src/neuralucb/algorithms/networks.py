"""Networks by name: the paper's, those that modules register, and those given in Python as an object."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from neuralucb.algorithms.algorithm import Task
from neuralucb.networks.encodings import concat
from neuralucb.networks.network import Network, from_functions
from neuralucb.policy import Slot
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.extensions import searched
from neuralucb.runtime.records import brief
from neuralucb.runtime.registry import Registry, check_call, first_line
from neuralucb.settings import Setting

__all__ = [
    "DEFAULT",
    "GIVEN",
    "NETWORKS",
    "NETWORK_BY_NAME",
    "NamedNetwork",
    "find_network",
    "make_network",
    "register_network",
]

DEFAULT = "mlp"
"""The paper's network."""


GIVEN = "given:"
"""How the names of networks begin that were given in Python and have no registered one."""


Maker: TypeAlias = Callable[[Task, Mapping[str, Any]], Any]
"""task, settings -> a `Network`, (init, apply), (init, apply, features), or an object with init and apply"""


@brief
class NamedNetwork(NamedTuple):
    """A network by name, one line about it, and how it is made.

    Example:
        >>> NETWORKS["mlp"].name
        'mlp'
    """

    name: str
    summary: str
    make: Maker
    dense: bool = False
    """whether it ends in the paper's dense layers: it then has its scaling, with the pull mλ, and its precision"""
    intercept: bool = False
    """whether, in learned units, contexts end with a 1: for networks without biases, if one number more fits them"""


def _check(name: str, network: NamedNetwork) -> None:
    check_call(f"network {name!r}", network.make, "(task, settings)", ("task", "settings"))


NETWORKS: Registry[NamedNetwork] = Registry("network", NamedNetwork, _check, lambda network: network.make)
"""Every network that is known by name.

Example:
    >>> "mlp" in NETWORKS
    True
"""
_given: dict[str, Any] = {}


def register_network(name: str, *, summary: str = "") -> Callable[[Maker], Maker]:
    """Make a network known by name, to `network=` in Python, in sweeps and on the command line.

    Args:
        name: A new name, such as "my-cnn".
        summary: One line for `neuralucb list`; if not set, the first line of the function's docstring.

    Returns:
        A decorator for a function (task, settings) that returns the network: a `Network`, a pair (init, apply), three
        functions (init, apply, features), or an object with init and apply, such as a module of Flax Linen. A context
        has `task.dim` numbers. Where `task.shared_by` arms share it, `apply` returns one number per arm.

    Raises:
        InputError: If the name is taken or not one word, or the function does not take (task, settings).

    Example:
        >>> import jax
        >>> @register_network("example-linear", summary="f(x) = wᵀx")
        ... def linear(task, settings):
        ...     return lambda key: jax.random.normal(key, (task.dim,), "float32"), lambda w, x: w @ x
        >>> from neuralucb.algorithms import build
        >>> policy = build("neural-ucb", dim=4, network="example-linear")
        >>> del NETWORKS["example-linear"]
    """

    def register(make: Maker) -> Maker:
        NETWORKS[name] = NamedNetwork(name, summary or first_line(make), make)
        return make

    return register


def make_network(name: str, task: Task, settings: Mapping[str, Any]) -> Network:
    """The network of that name for contexts of this task.

    Raises:
        InputError: If there is none, or it does not fit the task; the message says how to mend it.
    """
    return _fit(find_network(name).make(task, settings), task, f"network {name!r}")


def find_network(name: str) -> NamedNetwork:
    """The network of that name as a record; for one that was given in Python, with nothing of the paper's."""
    return NamedNetwork(name, "", lambda task, settings: _given[name]) if name in _given else NETWORKS.find(name)


def _read(value: Any) -> str:
    if not isinstance(value, str):
        return _name_given(value)
    if value not in NETWORKS and value not in _given:
        NETWORKS.load()
    if value in NETWORKS or value in _given:
        return value
    if value.startswith(GIVEN):
        raise InputError(
            "must be a network of this process, but it was given in Python in another one; give it again, or "
            "register it by name (register_network)"
        )
    raise InputError(f"must be one of {', '.join(NETWORKS)} ({searched(NETWORKS.group)})")


NETWORK_BY_NAME = Setting(
    "network",
    "f",
    DEFAULT,
    "the network itself",
    "mlp, a registered name, or in Python a Network or (init, apply)",
    _read,
    False,
)


def _name_given(value: Any) -> str:
    """A name for a network given in Python: the same network has the same name, another one another."""
    _functions(value, "it")
    kind = getattr(value, "apply", None) if not isinstance(value, tuple) or hasattr(value, "apply") else value[1]
    owner = getattr(kind, "__self__", None)
    label = type(owner).__name__ if owner is not None else getattr(kind, "__qualname__", "network")
    label = label.split(".")[-1]
    label = label if label.isidentifier() and label not in ("apply", "value_of") else "network"
    number = 1
    while True:
        name = f"{GIVEN}{label}" + f"-{number}" * (number > 1)
        if name not in _given or _is_same(_given[name], value):
            _given.setdefault(name, value)
            return name
        number += 1


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # objects of other libraries may not compare to one boolean
        return False


def _functions(made: Any, what: str) -> tuple[Any, ...]:
    """init, apply and perhaps features of whatever was given; a `Network` as it is."""
    if isinstance(made, Network):
        return made
    if callable(getattr(made, "init", None)) and callable(getattr(made, "apply", None)):
        return made.init, made.apply
    if isinstance(made, tuple | list) and len(made) in (2, 3) and all(callable(each) for each in made):
        return tuple(made)
    raise InputError(
        f"{what} must be a Network, a pair of functions (init, apply), three (init, apply, features), or an object "
        f"with init and apply, got {_short(made)}"
    )


def _fit(made: Any, task: Task, what: str) -> Network:
    """A network for contexts of this task, whichever way it was written."""
    if isinstance(made, Network):
        return _fit_network(made, task, what)
    init, apply, *rest = _functions(made, what)
    arms = task.shared_by
    alone = _try(init, apply, task.dim)
    if arms is None:
        if isinstance(alone, Exception):
            raise _cannot_take(what, task.dim, alone) from alone
        if alone.shape not in ((), (1,)):
            raise InputError(f"{what} must return one number for one context of {task.dim} numbers, got {alone}.")
        return _pair(init, apply, rest, task.dim, None)
    if not isinstance(alone, Exception) and alone.shape == (arms,):
        return _pair(init, apply, rest, task.dim, arms)
    joined = _try(init, apply, task.dim + arms)
    depends = isinstance(alone, Exception) or _takes_context(init)
    if not isinstance(joined, Exception) and joined.shape in ((), (1,)) and depends:
        return concat(_pair(init, apply, rest, task.dim + arms, None), arms)
    if isinstance(alone, Exception):
        raise _cannot_take(what, task.dim, alone) from alone
    raise InputError(f"{what} returns {_numbers(alone)} for {_shared(task)}; {_cure(task)}.")


def _fit_network(network: Network, task: Task, what: str) -> Network:
    """A `Network` that says itself which contexts it takes."""
    shape = getattr(network.example, "shape", None)
    arms = task.shared_by
    if arms is not None and shape == (task.dim + arms,):
        return concat(network, arms)
    if arms is not None and isinstance(network.example, Slot):
        shape = network.example.x.shape
    elif arms is not None:
        raise InputError(f"{what} takes {network.example} and does not see the arm, for {_shared(task)}; {_cure(task)}")
    if shape != (task.dim,):
        raise InputError(f"{what} takes {network.example}, but a context has {task.dim} numbers.")
    return network


def _pair(init: Any, apply: Any, rest: list[Any], dim: int, arms: int | None) -> Network:
    features = rest[0] if rest else None
    example = jax.ShapeDtypeStruct((dim,), "float32")
    return from_functions(_of_key(init, dim), apply, example=example, features=features, arms=arms)


def _of_key(init: Any, dim: int) -> Callable[[jax.Array], Any]:
    """`init` as a function of the key alone; Flax and Haiku also want a context, to see its shape."""
    return (lambda key: init(key, jnp.zeros(dim, "float32"))) if _takes_context(init) else init


def _takes_context(init: Any) -> bool:
    try:
        parameters = inspect.signature(init).parameters.values()
    except (TypeError, ValueError):
        return False
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return True
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return len([each for each in places if each.default is each.empty]) > 1


def _try(init: Any, apply: Any, dim: int) -> Any:
    """What the pair makes of a context of so many numbers: a shape, or the exception."""
    x = jax.ShapeDtypeStruct((dim,), "float32")
    try:
        result = jax.eval_shape(lambda key, x: apply(_of_key(init, dim)(key), x), jax.random.key(0), x)
        return result if hasattr(result, "shape") else TypeError(f"apply returned {_short(result)}, not an array")
    except Exception as problem:  # whatever the user's functions raise
        return problem


def _cannot_take(what: str, dim: int, problem: Exception) -> InputError:
    return InputError(f"{what} cannot take a context of {dim} numbers: {type(problem).__name__}: {problem}")


def _shared(task: Task) -> str:
    return f"a context of {task.dim} numbers that {task.shared_by} arms share"


def _cure(task: Task) -> str:
    together = task.dim + (task.shared_by or 0)
    return (
        f"let it return {task.shared_by} numbers, one per arm (task.shared_by), or take {together}: the context, then "
        "the arm as a one-hot vector"
    )


def _numbers(result: Any) -> str:
    return "one number" if result.shape in ((), (1,)) else f"shape {result.shape}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
