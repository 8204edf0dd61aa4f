"""EXP4: exponential weights over other algorithms as experts (Auer et al. 2002)."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task, context_check
from neuralucb.algorithms.shared_settings import EPSILON
from neuralucb.estimators.advice import advice
from neuralucb.policy import Policy, guard
from neuralucb.runtime.errors import InputError
from neuralucb.settings import Setting

__all__ = ["EXP4"]

SEPARATOR = "+"


def exp4(task: Task, settings: Mapping[str, Any]) -> Policy:
    """EXP4 over other algorithms, each with its default settings (Auer, Cesa-Bianchi, Freund & Schapire 2002).

    A round costs at most two choices of each expert, propensities included, and an observation of each. Its
    propensities are as exact as theirs, and none is 0 while γ is above 0.
    Departs from the paper in: experts that learn from every reward, where the text's give advice that is fixed in
    advance; and rewards that are not scaled to [0, 1].
    """
    from neuralucb.algorithms.registry import find_algorithm  # which imports this module

    experts = []
    for name in settings["experts"].split(SEPARATOR):
        algorithm = find_algorithm(name)
        experts.append(algorithm.recipe(task, {each.name: each.default for each in algorithm.settings}))
    return guard(advice(experts, share=settings["epsilon"]), context_check(task))


def check_experts(task: Task, settings: Mapping[str, Any]) -> None:
    """Refuse experts that are not known, that know the expected rewards, or that are EXP4 itself."""
    from neuralucb.algorithms.registry import find_algorithm

    for name in settings["experts"].split(SEPARATOR):
        try:
            algorithm = find_algorithm(name)
            algorithm.check(task, {each.name: each.default for each in algorithm.settings})
        except InputError as problem:
            raise InputError(f"experts must be algorithms that can be built here, got {name!r}: {problem}") from None
        if name == "exp4" or algorithm.sees_expected:
            raise InputError(f"experts must be other algorithms that learn, got {name!r} among them; leave it out.")


def _read_names(value: Any) -> str:
    """NAME+NAME+…, from text, a list or a tuple."""
    text = SEPARATOR.join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    names = [name.strip() for name in text.split(SEPARATOR)]
    if not all(names):
        raise InputError(
            f"must be names of algorithms, with {SEPARATOR} between them, such as lin-ucb{SEPARATOR}lin-ts"
        )
    return SEPARATOR.join(names)


EXPERTS = Setting(
    "experts",
    "ξ_i",
    "lin-ucb+lin-ts+uniform",
    "algorithms that give advice",
    "names of algorithms with + between them",
    _read_names,
    False,
)


EXP4 = Algorithm(
    "exp4",
    "exponential weights over other algorithms, by what each would have earned",
    "Auer, Cesa-Bianchi, Freund & Schapire 2002, Exp4",
    "experts that learn from every reward, where the text's advice is fixed in advance; and rewards that are not "
    "scaled to [0, 1]",
    (EPSILON._replace(symbol="γ", default=0.1, grid=(0.03, 0.1, 0.3)), EXPERTS),
    exp4,
    check_experts,
    title="EXP4",
    family="related",
)
