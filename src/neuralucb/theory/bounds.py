"""The regret bounds of Theorem 1 and Corollary 1, the number of training steps they need, and their conditions."""

import math
from typing import NamedTuple

from neuralucb.confidence import Assumptions
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.records import brief
from neuralucb.theory.linalg import check_regularization

__all__ = ["Conditions", "Horizon", "conditions", "corollary_1", "least_steps", "theorem_1"]

LARGEST = 709.0
"""The largest power of e in float64; beyond it, numbers are infinite."""


class Horizon(NamedTuple):
    """What the bounds are about: T rounds of K arms, a network of L layers, λ.

    Example:
        >>> round(Horizon(rounds=100, arms=4, depth=2, regularization=1.0).log_contexts, 2)
        5.99
    """

    rounds: int
    arms: int
    depth: int
    regularization: float

    @property
    def log_contexts(self) -> float:
        """log(1 + TK/λ)"""
        return math.log1p(self.rounds * self.arms / self.regularization)


@brief
class Conditions(NamedTuple):
    """What Theorem 1 requires, with every constant that the paper leaves unnamed set to 1.

    Example:
        >>> needed = conditions(Assumptions(), Horizon(100, 4, 2, 1.0), width=20, smallest_eigenvalue=0.1)
        >>> needed.width > 1e20  # wider than any network
        True
    """

    width: float
    """the smallest m allowed: the largest of the next four"""
    width_for_kernel: float
    """Lemma 5.1: T⁴K⁴L⁶ log(T²K²L/δ)/λ_0⁴"""
    width_for_training: float
    """Lemma 5.2: the m with m = T⁷λ⁻⁷L²¹(log m)³"""
    width_for_start: float
    """Lemma 5.2, corrected: λ^(1/2) L^(-3/2) (log(TKL²/δ))^(3/2)"""
    width_for_regret: float
    """Lemma 5.4: T⁶K⁶L⁶ (log(TKL²/δ))^(3/2)"""
    step_size: float
    """the largest η at the given width: 1/(mTL + mλ)"""
    regularization: float
    """the smallest λ allowed: max(1, S⁻²)"""


def theorem_1(effective_dimension: float, assumed: Assumptions, over: Horizon, *, steps: float) -> float:
    """The bound on R_T that holds with probability 1 - δ (Theorem 1).

        R_T ≤ 3√T sqrt(D + 2) · [ν sqrt(D + 2 - 2 log δ) + (λ + C_3 TL)(1 - λ/(TL))^(J/2) sqrt(T/λ) + 2√λ S] + 1

    with D = d̃ log(1 + TK/λ) = log det(I + H/λ). It is proved for a width m and a λ at or above `conditions`.
    Departures: the printed "+ +" is one +; the constant that Theorem 1 prints as C_2 is the C_3 of γ_t, and called so.

    Args:
        effective_dimension: d̃.
        assumed: ν, δ, S and the constants.
        over: T, K, L and λ.
        steps: J, the training steps; see `least_steps`.

    Returns:
        The bound.

    Raises:
        InputError: A number outside what the analysis allows, such as λ above TL.

    Example:
        >>> from neuralucb import theory
        >>> assumed, over = theory.Assumptions(norm=3.0), theory.Horizon(100, 4, 2, 1.0)
        >>> round(theory.theorem_1(7.0, assumed, over, steps=theory.least_steps(assumed, over)))
        3167
    """
    failure = _checked(assumed, over).failure
    if failure == 1:
        raise InputError("failure must be between 0 and 1, got 1.0; a bound that may always fail says nothing.")
    return _regret(effective_dimension, assumed, over, steps, confidence=-2 * math.log(failure)) + 1


def corollary_1(effective_dimension: float, assumed: Assumptions, over: Horizon, *, steps: float) -> float:
    """The bound on the expected regret E[R_T] (Corollary 1): Theorem 1 with δ = 1/T, and 2 for the 1 at its end.

    Its proof uses R_T ≤ T, which needs 0 ≤ h ≤ 1; h1 and h2 of the experiments go beyond.
    Departures: as in Theorem 1.

    Args:
        effective_dimension: d̃.
        assumed: ν, S and the constants; δ is ignored.
        over: T, K, L and λ.
        steps: J, the training steps; see `least_steps`.

    Returns:
        The bound.

    Raises:
        InputError: As `theorem_1` does.

    Example:
        >>> from neuralucb import theory
        >>> assumed, over = theory.Assumptions(norm=3.0), theory.Horizon(100, 4, 2, 1.0)
        >>> round(theory.corollary_1(7.0, assumed, over, steps=theory.least_steps(assumed, over)))
        3233
    """
    _checked(assumed, over)
    return _regret(effective_dimension, assumed, over, steps, confidence=2 * math.log(over.rounds)) + 2


def least_steps(assumed: Assumptions, over: Horizon) -> int:
    """J, the training steps after which the optimisation error is at most √λ S (the remark after Theorem 1).

        J = 2 (TL/λ) log(√T (λ + C_3 TL)/(λS)),   0 where the logarithm is negative

    Departure: the printed logarithm is upside down, which would make J negative.

    Args:
        assumed: S and the constants.
        over: T, K, L and λ.

    Returns:
        J, rounded up.

    Raises:
        InputError: S is 0, or λ is so small that J overflows.

    Example:
        >>> from neuralucb import theory
        >>> theory.least_steps(theory.Assumptions(norm=3.0), theory.Horizon(100, 4, 2, 1.0))
        2603
    """
    known, lam, layers = _checked(assumed, over), over.regularization, over.rounds * over.depth
    if not known.norm > 0:
        raise InputError(f"norm must be positive, got {known.norm}; with S = 0 no number of steps is enough.")
    excess = math.log(over.rounds) / 2 + math.log(lam + known.constant * layers) - math.log(lam) - math.log(known.norm)
    steps = 2 * layers / lam * max(0.0, excess)
    if not steps < math.inf:
        raise InputError(f"regularization must be larger, got {lam:g}: the steps that it needs overflow.")
    return math.ceil(steps)


def conditions(assumed: Assumptions, over: Horizon, *, width: int, smallest_eigenvalue: float) -> Conditions:
    """What Theorem 1 and its lemmas require of m, η and λ, every unnamed constant taken as 1.

    Departures: the theorem says poly(…) for m; these are the polynomials of its lemmas. Lemma 5.2 prints λ^(-1/2) in
    its second width; what its proof uses, 2 sqrt(t/(mλ)) ≥ m^(-3/2) L^(-3/2) (log(TKL²/δ))^(3/2), gives λ^(1/2).

    Args:
        assumed: δ and S.
        over: T, K, L and λ.
        width: m of the network that is played, for the largest step size.
        smallest_eigenvalue: λ_0; 0 makes the width infinite.

    Returns:
        The conditions; numbers beyond float64 are infinite.

    Raises:
        InputError: A number outside what the analysis allows.

    Example:
        >>> from neuralucb import theory
        >>> over = theory.Horizon(100, 4, 2, 1.0)
        >>> needed = theory.conditions(theory.Assumptions(), over, width=20, smallest_eigenvalue=0.1)
        >>> f"{needed.width:.0e}"
        '4e+25'
    """
    known, (T, K, L, lam) = _checked(assumed, over), over
    if width < 1:
        raise InputError(f"width must be at least 1, got {width}.")
    if not 0 <= smallest_eigenvalue < math.inf:
        raise InputError(f"smallest_eigenvalue must be at least 0 and finite, got {smallest_eigenvalue}.")
    log_lambda_0 = math.log(smallest_eigenvalue) if smallest_eigenvalue > 0 else -math.inf
    log_delta, log_layers = math.log(known.failure), math.log(L)
    kernel = 4 * math.log(T * K) + 6 * log_layers + math.log(2 * math.log(T * K) + log_layers - log_delta)
    confidence = 1.5 * math.log(math.log(T * K) + 2 * log_layers - log_delta)
    widths = (
        _exp(kernel - 4 * log_lambda_0),
        _self_consistent(7 * (math.log(T) - math.log(lam)) + 21 * log_layers),
        _exp(confidence + math.log(lam) / 2 - 1.5 * log_layers),
        _exp(confidence + 6 * math.log(T * K * L)),
    )
    smallest = _exp(-2 * math.log(known.norm)) if known.norm > 0 else math.inf
    return Conditions(max(widths), *widths, 1 / (width * T * L + width * lam), max(1.0, smallest))


class _Known(NamedTuple):
    """The assumptions, as plain numbers."""

    noise: float
    failure: float
    norm: float
    constant: float
    """C_3, the only one in the bounds"""


def _regret(
    effective_dimension: float, assumed: Assumptions, over: Horizon, steps: float, *, confidence: float
) -> float:
    """Either bound, without the number that it adds at the end."""
    known, lam, T, layers = _checked(assumed, over), over.regularization, over.rounds, over.rounds * over.depth
    if lam > layers:
        raise InputError(
            f"regularization must be at most rounds · depth = {layers}, or 1 - λ/(TL) is negative, got {lam:g}."
        )
    if not steps >= 0:
        raise InputError(f"steps must be at least 0, got {steps}.")
    if not 0 <= effective_dimension < math.inf:
        raise InputError(f"effective_dimension must be at least 0 and finite, got {effective_dimension}.")
    information = effective_dimension * over.log_contexts + 2
    at_start = math.log(lam + known.constant * layers) + (math.log(T) - math.log(lam)) / 2
    # log1p, because 1 - λ/(TL) of a tiny λ would have no digits
    per_step = math.log1p(-lam / layers) if lam < layers else -math.inf
    optimisation = _exp(at_start + (steps / 2 * per_step if steps else 0.0))
    scale = known.noise * math.sqrt(information + confidence) + optimisation + 2 * math.sqrt(lam) * known.norm
    return 3 * math.sqrt(T) * math.sqrt(information) * scale


def _self_consistent(log_factor: float) -> float:
    """The largest m with m = factor · (log m)³; 1 where every m above 1 satisfies m ≥ factor · (log m)³."""
    log_m = max(1000.0, 2 * log_factor)  # from above, so as not to end at the smaller root
    for _ in range(200):
        log_m = log_factor + 3 * math.log(log_m)
        if log_m <= 1:
            return 1.0
    return _exp(log_m)


def _exp(logarithm: float) -> float:
    return math.exp(logarithm) if logarithm < LARGEST else math.inf


def _checked(assumed: Assumptions, over: Horizon) -> _Known:
    """The assumptions, where they and the horizon are numbers that the analysis allows."""
    for name, value, smallest in (("rounds", over.rounds, 1), ("arms", over.arms, 1), ("depth", over.depth, 2)):
        if not smallest <= value < math.inf:
            raise InputError(f"{name} must be at least {smallest} and finite, got {value}.")
    check_regularization(over.regularization)
    known = _Known(*(float(value) for value in (*assumed[:3], assumed.constants[2])))
    if not 0 < known.failure <= 1:
        raise InputError(f"failure must be between 0 and 1, got {known.failure}.")
    for name, number in (("noise_bound", known.noise), ("norm", known.norm), ("constants[2]", known.constant)):
        if not 0 <= number < math.inf:
            raise InputError(f"{name} must be at least 0 and finite, got {number}.")
    return known
