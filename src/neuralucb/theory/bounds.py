"""The regret bounds of Theorem 1 and Corollary 1, the number of training steps they need, and their conditions."""

import math
from typing import NamedTuple

from neuralucb.confidence import Assumptions

__all__ = ["Conditions", "Horizon", "conditions", "corollary_1", "least_steps", "theorem_1"]


class Horizon(NamedTuple):
    """What the bounds are about: T rounds of K arms, a network of L layers, λ."""

    rounds: int
    arms: int
    depth: int
    regularization: float

    @property
    def log_contexts(self) -> float:
        """log(1 + TK/λ)"""
        return math.log1p(self.rounds * self.arms / self.regularization)


class Conditions(NamedTuple):
    """What Theorem 1 asks for, with every constant that the paper leaves unnamed set to 1."""

    width: float
    """the least m: the largest of the next four"""
    width_for_kernel: float
    """Lemma 5.1: T⁴K⁴L⁶ log(T²K²L/δ)/λ_0⁴"""
    width_for_training: float
    """Lemma 5.2: the m with m = T⁷λ⁻⁷L²¹(log m)³"""
    width_for_start: float
    """Lemma 5.2: λ^(-1/2) L^(-3/2) (log(TKL²/δ))^(3/2)"""
    width_for_regret: float
    """Lemma 5.4: T⁶K⁶L⁶ (log(TKL²/δ))^(3/2)"""
    step_size: float
    """the largest η, at the width asked about: 1/(mTL + mλ)"""
    regularization: float
    """the least λ: max(1, S⁻²)"""


def theorem_1(effective_dimension: float, assumed: Assumptions, over: Horizon, *, steps: float) -> float:
    """The bound on R_T that holds with probability 1 - δ (Theorem 1).

        R_T ≤ 3√T sqrt(D + 2) · [ν sqrt(D + 2 - 2 log δ) + (λ + C_3 TL)(1 - λ/(TL))^(J/2) sqrt(T/λ) + 2√λ S] + 1

    with D = d̃ log(1 + TK/λ) = log det(I + H/λ). It is meant for a width m beyond `conditions`.
    Departures: the printed "+ +" is one +; the constant printed here as C_2 is the C_3 of γ_t, and called so.
    """
    nu, delta = float(assumed.noise_bound), float(assumed.failure)
    if not 0 < delta < 1:
        raise ValueError(f"failure must be between 0 and 1, got {delta}.")
    return _regret(effective_dimension, assumed, over, steps, nu=nu, doubt=-2 * math.log(delta)) + 1


def corollary_1(effective_dimension: float, assumed: Assumptions, over: Horizon, *, steps: float) -> float:
    """The bound on the expected regret E[R_T] (Corollary 1): Theorem 1 with δ = 1/T, and 2 for the 1 at its end.

    Its proof uses R_T ≤ T, which needs 0 ≤ h ≤ 1; h1 and h2 of the experiments go beyond.
    Departures: as in Theorem 1.
    """
    nu = float(assumed.noise_bound)
    return _regret(effective_dimension, assumed, over, steps, nu=nu, doubt=2 * math.log(over.rounds)) + 2


def least_steps(assumed: Assumptions, over: Horizon) -> int:
    """J, the training steps after which the optimisation error is at most √λ S (the remark after Theorem 1).

        J = 2 (TL/λ) log(√T (λ + C_3 TL)/(λS)),   0 where the logarithm is negative: S is then large enough as it is

    Departure: the printed logarithm is upside down, which would make J negative.
    """
    _check(over)
    lam, s = over.regularization, float(assumed.norm)
    if not s > 0:
        raise ValueError(f"norm must be positive, got {s}; with S = 0 no number of steps is enough.")
    layers = over.rounds * over.depth
    excess = math.log(math.sqrt(over.rounds) * (lam + float(assumed.constants[2]) * layers) / (lam * s))
    return max(0, math.ceil(2 * layers / lam * excess))


def conditions(assumed: Assumptions, over: Horizon, *, width: int, smallest_eigenvalue: float) -> Conditions:
    """What Theorem 1 and its lemmas ask of m, η and λ, every unnamed constant taken as 1.

    width  m, at which the largest step size is told; `smallest_eigenvalue` is λ_0, and 0 makes the width infinite.
    Departure: the theorem says poly(…) for m; these are the polynomials of its lemmas.
    """
    T, K, L, lam = over
    delta, s = float(assumed.failure), float(assumed.norm)
    of_kernel = math.inf
    if smallest_eigenvalue > 0:
        of_kernel = (T * K) ** 4 * L**6 * math.log((T * K) ** 2 * L / delta) / smallest_eigenvalue**4
    doubt = math.log(T * K * L**2 / delta) ** 1.5
    of_training = _self_consistent((T / lam) ** 7 * L**21)
    of_start, of_regret = doubt / (math.sqrt(lam) * L**1.5), (T * K * L) ** 6 * doubt
    return Conditions(
        max(of_kernel, of_training, of_start, of_regret),
        of_kernel,
        of_training,
        of_start,
        of_regret,
        1 / (width * T * L + width * lam),
        max(1.0, s**-2 if s > 0 else math.inf),
    )


def _regret(
    effective_dimension: float, assumed: Assumptions, over: Horizon, steps: float, *, nu: float, doubt: float
) -> float:
    """All of either bound but its last number."""
    _check(over)
    lam, T, layers = over.regularization, over.rounds, over.rounds * over.depth
    if lam > layers:
        raise ValueError(
            f"regularization must be at most rounds · depth = {layers}, or 1 - λ/(TL) is negative, got {lam:g}."
        )
    if steps < 0:
        raise ValueError(f"steps must be at least 0, got {steps}.")
    information = effective_dimension * over.log_contexts + 2
    optimisation = (lam + float(assumed.constants[2]) * layers) * (1 - lam / layers) ** (steps / 2) * math.sqrt(T / lam)
    scale = nu * math.sqrt(information + doubt) + optimisation + 2 * math.sqrt(lam) * float(assumed.norm)
    return 3 * math.sqrt(T) * math.sqrt(information) * scale


def _self_consistent(factor: float) -> float:
    """The largest m with m = factor · (log m)³; 1 where every m beyond 1 is enough."""
    log_factor = math.log(factor)
    log_m = max(1000.0, 2 * log_factor)  # from above: the smaller root, where there is one, must not catch it
    for _ in range(200):
        log_m = log_factor + 3 * math.log(log_m)
        if log_m <= 1:
            return 1.0
    return math.exp(log_m) if log_m < 700 else math.inf


def _check(over: Horizon) -> None:
    for name, value in (("rounds", over.rounds), ("arms", over.arms), ("depth", over.depth)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    if not over.regularization > 0:
        raise ValueError(f"regularization must be positive, got {over.regularization}.")
