"""Off-policy estimators of a policy's value as sums over decisions: batch by batch, in constant memory.

With w = π(a)/p, each is the mean of Σ_a π(a) r̂(a) + k (r - r̂(a)), where r̂ is 0 without a reward model. They differ
in k, the weight of the reward that was seen, and in what the sum is divided by. A new one is a row of ESTIMATORS and
a function for its k.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from neuralucb.evaluation.records import Estimate, Overlap, with_interval
from neuralucb.runtime.records import brief

__all__ = [
    "COLUMNS",
    "ESTIMATORS",
    "FROZEN",
    "METHODS",
    "Estimator",
    "ModelError",
    "Rounds",
    "Sums",
    "Terms",
    "add",
    "estimates_of",
    "logged_of",
    "overlap_of",
    "terms_of",
    "total",
]

TINY = 0.01
"""A propensity below this gives weights above 100."""
HEAVY = 10
"""A weight up to this dominates no estimate, however small the propensities of many arms must be."""
FEW = 50
"""Below this effective size, a mean with heavy weights is not yet normal, and its interval is too narrow."""
LEAST = 2
"""Below this effective size the error is unknown: with one decision, or none that agrees, nothing varies."""


class Estimator(NamedTuple):
    """One way to estimate the value of a policy that does not learn on the way."""

    trusts: str
    """what must be right for the estimate to be right"""
    weight: Callable[[np.ndarray, float], np.ndarray]
    """k from w [n] and the threshold τ of `switch`"""
    needs_model: bool
    divides: bool = True
    """whether k divides by a propensity"""
    per: str = "decision"
    """what the sum is divided by: the number of decisions, or the sum of w (`weight`)"""


def _no_weight(w: np.ndarray, switch: float) -> np.ndarray:
    return np.zeros_like(w)


def _full_weight(w: np.ndarray, switch: float) -> np.ndarray:
    return w


def _small_weights(w: np.ndarray, switch: float) -> np.ndarray:
    return np.where(w <= switch, w, 0.0)


ESTIMATORS = {
    "direct": Estimator("the reward model alone", _no_weight, needs_model=True, divides=False),
    # Horvitz & Thompson 1952
    "ips": Estimator("the logged propensities alone", _full_weight, needs_model=False),
    # Swaminathan & Joachims 2015
    "snips": Estimator("the propensities, up to a factor", _full_weight, needs_model=False, per="weight"),
    # Dudík, Langford & Li 2011
    "doubly-robust": Estimator("the propensities or the model", _full_weight, needs_model=True),
    # Wang, Agarwal & Dudík 2017
    "switch": Estimator("the propensities, and the model where weights are large", _small_weights, needs_model=True),
}

FROZEN = tuple(ESTIMATORS)
"""The methods for a frozen policy, one that does not learn on the way.

Example:
    >>> "doubly-robust" in FROZEN
    True
"""
METHODS = {name: one.trusts for name, one in ESTIMATORS.items()} | {
    "replay": "the propensities; the policy learns along the log"
}
"""All methods, and what each trusts.

Example:
    >>> METHODS["ips"]
    'the logged propensities alone'
"""
COLUMNS = ("decision", "weight", "reward", *ESTIMATORS)
"""What is summed over decisions: 1, w, r, and the value of a decision by each estimator."""


@brief
class Rounds(NamedTuple):
    """Decisions as an estimator sees them.

    Example:
        >>> one = np.ones(1)  # one decision between two arms, logged by chance
        >>> rounds = Rounds(one, 0.5 * one, np.zeros(1, int), np.array([[1.0, 0.0]]), np.zeros((1, 2)), one)
    """

    reward: np.ndarray
    """[n]"""
    propensity: np.ndarray
    """[n] of the logged arm, by the policy that logged"""
    arm: np.ndarray
    """[n] the logged arm"""
    target: np.ndarray
    """[n, K] π, the probabilities of the policy that is evaluated"""
    predicted: np.ndarray
    """[n, K] r̂, the rewards that a model expects; zeros without a model"""
    stands_for: np.ndarray
    """[n] s, how many decisions each stands for; ones unless the log was thinned"""


class Terms(NamedTuple):
    """What each decision contributes to each sum."""

    values: np.ndarray
    """[n, columns] v, one column for each of COLUMNS"""
    weights: np.ndarray
    """[n, estimators] k, one column for each of ESTIMATORS"""


@brief
class Sums(NamedTuple):
    """Everything that the estimators need to know of the decisions, as sums over COLUMNS.

    Example:
        >>> Sums.nothing().decisions
        0
    """

    decisions: int
    first: np.ndarray
    """[columns] Σ s v"""
    second: np.ndarray
    """[columns, columns] Σ s² v vᵀ"""
    largest: float
    """the largest w"""
    tiny: float
    """Σ s of the decisions with a propensity below TINY"""

    @classmethod
    def nothing(cls) -> "Sums":
        """Before the first decision."""
        k = len(COLUMNS)
        return cls(0, np.zeros(k), np.zeros((k, k)), 0.0, 0.0)


class ModelError(NamedTuple):
    """How the errors of the reward model's coefficients enter an estimate: decision i adds u_i to it."""

    with_columns: np.ndarray
    """[columns] Σ s v u, how they vary together with what is summed"""
    variance: float
    """Σ u²"""


def add(sums: Sums, rounds: Rounds, *, switch: float) -> Sums:
    """Add decisions to the sums.

    Args:
        sums: The sums so far; `Sums.nothing()` at first.
        rounds: The decisions to add.
        switch: τ, the weight above which the method `switch` relies on the model.

    Returns:
        The new sums; the old ones are unchanged.

    Example:
        >>> import numpy as np
        >>> one = np.ones(1)
        >>> rounds = Rounds(one, 0.5 * one, np.asarray([0]), np.asarray([[1.0, 0.0]]), np.zeros((1, 2)), one)
        >>> add(Sums.nothing(), rounds, switch=10).decisions
        1
    """
    values, s = terms_of(rounds, switch=switch).values, rounds.stands_for
    return Sums(
        sums.decisions + len(s),
        sums.first + s @ values,
        sums.second + (values * (s**2)[:, None]).T @ values,
        max(sums.largest, float(values[:, COLUMNS.index("weight")].max(initial=0.0))),
        sums.tiny + float(s[rounds.propensity < TINY].sum()),
    )


def terms_of(rounds: Rounds, *, switch: float) -> Terms:
    """What each decision contributes, by every estimator; `switch` is τ."""
    rows = np.arange(len(rounds.arm))
    w = rounds.target[rows, rounds.arm] / rounds.propensity
    direct = (rounds.target * rounds.predicted).sum(axis=1)
    residual = rounds.reward - rounds.predicted[rows, rounds.arm]
    weights = [one.weight(w, switch) for one in ESTIMATORS.values()]
    values = [
        direct + k * residual if one.needs_model else k * rounds.reward
        for one, k in zip(ESTIMATORS.values(), weights, strict=True)
    ]
    columns = [np.ones(len(rows)), w, rounds.reward, *values]
    return Terms(np.stack(columns, axis=1).astype(np.float64), np.stack(weights, axis=1).astype(np.float64))


def estimates_of(
    sums: Sums, methods: tuple[str, ...], *, level: float, model_errors: Mapping[str, ModelError] | None = None
) -> list[Estimate]:
    """The estimates by the given methods, each with its interval.

    Args:
        sums: The sums over all decisions.
        methods: Names from ESTIMATORS.
        level: The level of the intervals, such as 0.95.
        model_errors: How the errors of the reward model enter each estimate that uses it. Without, the model counts
            as exact, and the intervals are too narrow.

    Returns:
        One estimate per method, in the same order.

    Raises:
        InputError: `level` is not between 0 and 1.

    Example:
        >>> import numpy as np
        >>> one = np.ones(3)
        >>> rounds = Rounds(one, 0.5 * one, np.zeros(3, int), np.tile([1.0, 0.0], (3, 1)), np.zeros((3, 2)), one)
        >>> sums = add(Sums.nothing(), rounds, switch=10)
        >>> ips, snips = estimates_of(sums, ("ips", "snips"), level=0.95)
        >>> ips.value, snips.value
        (2.0, 1.0)
    """
    made = []
    for method in methods:
        value, error = _ratio(sums, method, ESTIMATORS[method].per, (model_errors or {}).get(method))
        effective = _effective(sums) if ESTIMATORS[method].divides else _size(sums)
        made.append(with_interval(method, value, _known(error, effective), effective, level=level))
    return made


def logged_of(sums: Sums, *, level: float) -> Estimate:
    """The reward per decision of the policy that logged.

    Args:
        sums: The sums over all decisions.
        level: The level of the interval, such as 0.95.

    Returns:
        The mean of the logged rewards, with its interval.

    Raises:
        InputError: `level` is not between 0 and 1.

    Example:
        >>> import numpy as np
        >>> one = np.ones(3)
        >>> rounds = Rounds(one, 0.5 * one, np.zeros(3, int), np.tile([1.0, 0.0], (3, 1)), np.zeros((3, 2)), one)
        >>> sums = add(Sums.nothing(), rounds, switch=10)
        >>> logged_of(sums, level=0.95).value
        1.0
    """
    (value, error), size = _ratio(sums, "reward", "decision"), _size(sums)
    return with_interval("logged", value, _known(error, size), size, level=level)


def overlap_of(sums: Sums) -> Overlap:
    """Diagnose how much of what the policy would do is in the log.

    Args:
        sums: The sums over all decisions.

    Returns:
        The weights in numbers, and in words what is wrong with them.

    Example:
        >>> import numpy as np
        >>> one = np.ones(3)
        >>> rounds = Rounds(one, 0.5 * one, np.zeros(3, int), np.tile([1.0, 0.0], (3, 1)), np.zeros((3, 2)), one)
        >>> sums = add(Sums.nothing(), rounds, switch=10)
        >>> overlap_of(sums).largest
        2.0
    """
    mean, error = _ratio(sums, "weight", "decision")
    effective = _effective(sums)
    error = _known(error, effective)
    share, tiny = effective / max(_size(sums), 1), sums.tiny / total(sums, "decision")
    words = []
    if abs(mean - 1) > 4 * error + 1e-6:
        words.append(
            f"weights average {mean:.3g} ± {error:.2g} but must average 1: the propensities are wrong, or the policy "
            "takes arms that the log never took"
        )
    if share < 0.1 or effective < FEW:
        words.append(
            f"{'little overlap' if share < 0.1 else 'few decisions'}: the {sums.decisions} logged decisions tell as "
            f"much as {effective:.0f} decisions by the policy itself"
            + (", too few for reliable intervals" if effective < FEW else "")
            + ("; the log hardly ever took the policy's arms" if effective < LEAST and share < 0.1 else "")
        )
    if tiny > 0.01 and sums.largest > HEAVY:
        words.append(f"{100 * tiny:.1f} % of the propensities are below {TINY}: a few decisions dominate the estimate")
    return Overlap(sums.largest, share, mean, error, tiny, tuple(words))


def total(sums: Sums, column: str) -> float:
    """Σ s v of a column."""
    return float(sums.first[COLUMNS.index(column)])


def _ratio(sums: Sums, top: str, bottom: str, model_error: ModelError | None = None) -> tuple[float, float]:
    """Σ s v/Σ s b for the columns v and b, and its standard error by the delta method.

    Decision i moves the ratio by s (v - ratio b)/Σ s b, and by u through the model's coefficients. Both come from the
    same rewards, so they are added before they are squared.
    """
    t, b = COLUMNS.index(top), COLUMNS.index(bottom)
    if not sums.first[b] > 0:
        return float("nan"), float("nan")
    ratio = sums.first[t] / sums.first[b]
    squares = sums.second[t, t] - 2 * ratio * sums.second[t, b] + ratio**2 * sums.second[b, b]
    variance = squares / sums.first[b] ** 2
    if model_error is not None:
        together = model_error.with_columns[t] - ratio * model_error.with_columns[b]
        variance += 2 * together / sums.first[b] + model_error.variance
    return float(ratio), float(np.sqrt(max(variance, 0.0)))


def _known(error: float, effective: float) -> float:
    return error if effective >= LEAST else float("nan")


def _effective(sums: Sums) -> float:
    """(Σ s w)²/Σ s² w²."""
    at = COLUMNS.index("weight")
    return float(sums.first[at] ** 2 / sums.second[at, at]) if sums.second[at, at] > 0 else 0.0


def _size(sums: Sums) -> float:
    """(Σ s)²/Σ s²: the number of decisions, or fewer where some stand for many."""
    at = COLUMNS.index("decision")
    return float(sums.first[at] ** 2 / sums.second[at, at])
