"""What the theory says of a problem, beside what NeuralUCB does on it: d̃, λ_0, S, the bound, the regret."""

import math
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.confidence import Assumptions
from neuralucb.experiments.plans import Plan
from neuralucb.experiments.results import Result
from neuralucb.policy import Slot
from neuralucb.runtime.memory import host_bytes, require_memory
from neuralucb.runtime.progress import Meter
from neuralucb.simulation import draw_rounds
from neuralucb.theory.bounds import Conditions, Horizon, conditions, corollary_1, least_steps, theorem_1
from neuralucb.theory.dimension import dimension_from_eigenvalues, dimensions_over_rounds, effective_dimension_of
from neuralucb.theory.kernel import LIMITS, Directions, directions, distinct, tangent_kernel
from neuralucb.theory.linalg import finite_or_none
from neuralucb.theory.norm import rounding, squared_norms

__all__ = ["Report", "analyse", "noise_of", "not_proved", "unlike_the_paper"]

POINTS = 60
"""of the curves over rounds"""


DECADES = 3
"""For d̃ against λ, on either side of 1; more where the λ that is played lies beyond."""


A_DECADE = 4
"""Points of that curve."""


AGREE = 1e-6
"""Relative: what d̃ by Cholesky and by eigenvalues may differ without a word."""


ROOM = 2.25
"""Bytes beside each other when all is exact, over those of the matrix."""


CONTEXT_BYTES = 28
"""Of each number of a context: as it is drawn, in float32, and three times in float64 while its direction is found."""


class Report(NamedTuple):
    """The theory of one problem with the contexts of one seed. What cannot be had is None, and `notes` says why."""

    problem: str
    seed: int
    over: Horizon
    dim: int
    width: int
    initialization: str
    """whose limit the kernel is"""
    effective_dimension: float
    effective_dimension_error: float
    """0 where it is exact"""
    lambda_0: float | None
    norm: float | None
    """S = sqrt(2 hᵀH⁻¹h)"""
    steps: int | None
    """J, corrected"""
    bound: float | None
    """Theorem 1"""
    expected_bound: float | None
    """Corollary 1"""
    conditions: Conditions | None
    repeated: int
    """contexts whose direction came before"""
    largest_reward: float
    notes: tuple[str, ...]
    eigenvalues: np.ndarray | None
    """of H, largest first"""
    rounds: np.ndarray
    """t, of the two curves"""
    dimensions: np.ndarray
    """d̃ after t rounds"""
    bounds: np.ndarray
    """Theorem 1 after t rounds; NaN where it says nothing"""

    def dimensions_by_regularization(self) -> tuple[np.ndarray, np.ndarray]:
        """λ, and d̃ with it; empty where there are no eigenvalues."""
        if self.eigenvalues is None:
            return np.zeros(0), np.zeros(0)
        played = math.log10(self.over.regularization)
        low, high = min(-DECADES, math.floor(played)), max(DECADES, math.ceil(played))
        lambdas = np.union1d(np.logspace(low, high, A_DECADE * (high - low) + 1), self.over.regularization)
        found = [dimension_from_eigenvalues(self.eigenvalues, regularization=float(one)) for one in lambdas]
        return lambdas, np.asarray(found)

    def as_json(self, measured: Result) -> dict[str, Any]:
        """A plain dictionary, with the regret that was measured; what cannot be had is None."""
        of_seed = dict(zip(measured.seeds, measured.final_regret, strict=True))
        return {
            "problem": self.problem,
            "rounds": self.over.rounds,
            "arms": self.over.arms,
            "contexts": self.over.rounds * self.over.arms,
            "dim": self.dim,
            "width": self.width,
            "depth": self.over.depth,
            "regularization": self.over.regularization,
            "kernel": "H" if self.initialization == "gaussian" else "H̃",
            "seed": self.seed,
            "effective_dimension": finite_or_none(self.effective_dimension),
            "effective_dimension_error": self.effective_dimension_error,
            "lambda_0": self.lambda_0,
            "S": self.norm,
            "bound": finite_or_none(self.bound),
            "expected_bound": finite_or_none(self.expected_bound),
            "steps": self.steps,
            "measured_regret": finite_or_none(measured.final_regret.mean()),
            "measured_regret_of_seed": finite_or_none(of_seed[self.seed]),
            "largest_reward": self.largest_reward,
            "repeated_contexts": self.repeated,
            "conditions": None
            if self.conditions is None
            else {name: finite_or_none(value) for name, value in self.conditions._asdict().items()},
            "notes": list(self.notes),
            "measured": measured.as_json(),
        }


def analyse(plan: Plan, meter: Meter = lambda what: None) -> Report:
    """The theory for the one point of a plan of NeuralUCB, on the contexts of its first seed.

    Contexts of one direction, such as a row of a data set that comes twice, make H singular. d̃ counts them all, as
    Definition 2 does; λ_0 is then 0; S is taken over the first of each direction, where rewards agree (h(cx) = c h(x),
    as every network without biases has it), and is infinite where they do not. Where H of those is singular to working
    precision all the same, S, J and the bound are None.
    """
    ((point,),) = plan.points.values()
    problem, seed = plan.problem.make(**point.problem), plan.seeds[0]
    settings = point.algorithm
    over = Horizon(plan.rounds, problem.arms, settings["depth"], settings["regularization"])
    count = over.rounds * over.arms
    require_memory(
        count * problem.dim * CONTEXT_BYTES, what=f"the theory of {count} contexts", cure="play fewer rounds", host=True
    )
    drawn = draw_rounds(jax.random.key(seed), problem, rounds=plan.rounds)
    known, h = directions(_flat(drawn.contexts)), np.asarray(drawn.expected, np.float64).ravel()
    initialization = settings["initialization"] if settings["initialization"] in LIMITS else "gaussian"
    notes = unlike_the_paper(settings, problem.shared, known, h)
    noise, louder = noise_of(settings, point.problem, np.asarray(drawn.noise))
    common: dict[str, Any] = {"depth": over.depth, "initialization": initialization}
    about = Report(
        plan.problem.name, seed, over, problem.dim, settings["width"], initialization, math.nan, 0.0,
        None, None, None, None, None, None, 0, float(h.max()), (), None, np.zeros(0), np.zeros(0), np.zeros(0),
    )  # fmt: skip
    if ROOM * 8 * len(known) ** 2 > host_bytes():
        found = effective_dimension_of(known, regularization=over.regularization, progress=meter("d̃"), **common)
        note = f"H of {len(known)} contexts does not fit into memory: d̃ is {'an estimate' if found.error else 'exact'}"
        return about._replace(
            effective_dimension=found.value,
            effective_dimension_error=found.error,
            notes=(*notes, note + ", and λ_0, S and the bound are left out; play fewer rounds for them"),
        )
    kernel = tangent_kernel(known, progress=meter("kernel"), **common)
    first = distinct(known)
    done = meter("eigenvalues")
    values = np.linalg.eigvalsh(kernel)
    if done is not None:
        done(1, 1)
    of_rounds, more = _dimensions(kernel.copy(), values, over, meter)
    about = about._replace(
        effective_dimension=float(of_rounds[-1]),
        repeated=int((first != np.arange(len(first))).sum() + (known.norm == 0).sum()),
        eigenvalues=values[::-1],
    )
    regular = about.repeated == 0 and values[0] > rounding(values)
    about = about._replace(lambda_0=float(values[0]) if regular else 0.0)
    norms, of_norms = np.full(len(h), np.inf), [
        f"H is singular to working precision (smallest eigenvalue {values[0]:.2g}), though no two contexts have one "
        "direction: S and the bound are left out"
    ]  # fmt: skip
    if regular or about.repeated:
        norms, of_norms = _norms(kernel, known, h, first, meter)
    constants = tuple(settings[f"constant_{i}"] for i in (1, 2, 3))
    assumed = Assumptions(noise, settings["failure"], 0.0, constants)
    return _with_bounds(about, assumed, of_rounds, norms, (*notes, *louder, *more, *of_norms))


def _dimensions(kernel: np.ndarray, values: np.ndarray, over: Horizon, meter: Meter) -> tuple[np.ndarray, list[str]]:
    """d̃ after every round, by Cholesky, compared at the end with that of the eigenvalues; NaN where rounding has it."""
    try:
        found = dimensions_over_rounds(kernel, arms=over.arms, regularization=over.regularization, progress=meter("d̃"))
    except ValueError as problem:
        return np.full(over.rounds, np.nan), [f"d̃ and the bound are left out: {str(problem).rstrip('.')}"]
    other = dimension_from_eigenvalues(values, regularization=over.regularization)
    if math.isclose(found[-1], other, rel_tol=AGREE):
        return found, []
    return found, [
        f"d̃ is {found[-1]:.8g} by Cholesky and {other:.8g} by eigenvalues: beside so small a λ, "
        f"{over.regularization:g}, only the digits that they share are right"
    ]


def _norms(
    kernel: np.ndarray, known: Directions, h: np.ndarray, first: np.ndarray, meter: Meter
) -> tuple[np.ndarray, list[str]]:
    """hᵀH⁻¹h of the contexts up to each, over those of a new direction; infinite from where rewards contradict."""
    notes = []
    new = np.flatnonzero((first == np.arange(len(first))) & (known.norm > 0))
    later = np.flatnonzero((first != np.arange(len(first))) & (known.norm > 0))
    ratio = known.norm[later] / known.norm[first[later]]
    at_odds = later[~np.isclose(h[later], ratio * h[first[later]], rtol=1e-5, atol=1e-6)]
    zeros = np.flatnonzero((known.norm == 0) & (h != 0))
    if later.size:
        notes.append(
            f"{later.size} contexts repeat a direction (the first: {later[0]}, as {first[later[0]]}), so that "
            "H is singular and λ_0 = 0; S is taken over the first of each"
        )
    if (known.norm == 0).any():
        notes.append(f"context {np.flatnonzero(known.norm == 0)[0]} is 0, where every network is 0, so that λ_0 = 0")
    whole = np.zeros(len(h))
    try:
        kept = kernel if len(new) == len(h) else kernel[np.ix_(new, new)]
        whole[new] = np.diff(squared_norms(kept, h[new], meter("S")), prepend=0.0) if new.size else 0.0
    except ValueError as problem:
        return np.full(len(h), np.inf), [*notes, f"S cannot be computed: {str(problem).rstrip('.')}"]
    bad = np.concatenate([at_odds, zeros])
    if bad.size:
        notes.append(f"S is infinite: no network can have the rewards of context {bad.min()} and of the one it repeats")
        whole[bad.min()] = np.inf
    return np.cumsum(whole), notes


def _with_bounds(
    about: Report, assumed: Assumptions, of_rounds: np.ndarray, norms: np.ndarray, notes: tuple[str, ...]
) -> Report:
    """The report with S, J, the bounds at the end and on the way, and what they ask for."""
    over = about.over
    at = np.unique(np.linspace(1, over.rounds, min(POINTS, over.rounds)).astype(int))
    sizes = np.sqrt(2 * norms[over.arms * at - 1])
    bounds = np.full(len(at), np.nan)
    told = (*notes,)
    for index, (t, size) in enumerate(zip(at, sizes, strict=True)):
        if 0 < size < math.inf and not math.isnan(of_rounds[t - 1]):
            then, until = assumed._replace(norm=float(size)), over._replace(rounds=int(t))
            try:
                bounds[index] = theorem_1(of_rounds[t - 1], then, until, steps=least_steps(then, until))
            except ValueError as problem:
                told = (*notes, f"no bound: {str(problem).rstrip('.')}") if t == over.rounds else notes
    about = about._replace(rounds=at, dimensions=of_rounds[at - 1], bounds=bounds, notes=told)
    if not math.isfinite(sizes[-1]):
        return about
    final = assumed._replace(norm=float(sizes[-1]))
    asked = conditions(final, over, width=about.width, smallest_eigenvalue=about.lambda_0 or 0.0)
    about = about._replace(norm=float(sizes[-1]), conditions=asked)
    if math.isnan(bounds[-1]):
        return about
    steps = least_steps(final, over)
    return about._replace(
        notes=(*told, *not_proved(asked, over)),
        steps=steps,
        bound=float(bounds[-1]),
        expected_bound=corollary_1(float(of_rounds[-1]), final, over, steps=steps),
    )


def _flat(contexts: Any) -> Any:
    """Contexts of all rounds and arms in one row, in the order in which they came."""
    flat = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:]), contexts)
    return Slot(*flat) if isinstance(contexts, Slot) else flat


UNIT = 1e-5
"""What float32 makes of a norm of 1."""


def unlike_the_paper(settings: dict[str, Any], shared: bool, known: Directions, h: np.ndarray) -> list[str]:
    """What the network that is played, or the problem, has that the theory does not."""
    usual = {"scaling": "tangent", "biases": False} | ({"encoding": "disjoint"} if shared else {})
    other = [f"{name}={settings[name]}" for name, value in usual.items() if settings[name] != value]
    if settings["initialization"] not in LIMITS:
        other.append(f"initialization={settings['initialization']}")
    if settings["initialization"] == "paper" and not settings["duplicate"]:
        other.append("initialization=paper without duplicate, whose limit is another")
    notes = [f"H is that of the paper's network; the one played has {', '.join(other)}"] if other else []
    if np.abs(known.norm - 1).max() > UNIT or h.min() < 0 or h.max() > 1:
        notes.append(
            "the bound is stated for contexts of norm 1 and rewards between 0 and 1; here norms are "
            f"{known.norm.min():.2g} to {known.norm.max():.2g} and rewards {h.min():.2g} to {h.max():.2g}"
        )
    return notes


def noise_of(settings: dict[str, Any], problem: dict[str, Any], drawn: np.ndarray) -> tuple[float, list[str]]:
    """ν of the bounds: noise_bound, or the problem's own noise where that is larger, which a note tells.

    A problem that does not say how large its noise is, is judged by the noise that was drawn, three standard errors
    allowed. Labelled rows have none, so that any ν is enough.
    """
    assumed = float(settings["noise_bound"])
    noise = float(problem["noise"]) if "noise" in problem else float(np.sqrt(np.mean(np.square(drawn))))
    slack = 1.0 if "noise" in problem else 1 + 3 / math.sqrt(2 * len(drawn))
    if noise <= assumed * slack:
        return assumed, []
    return noise, [
        f"ν is the problem's noise, {noise:.3g}: noise_bound={assumed:g} is below it, and γ_t plays with that"
    ]


def not_proved(asked: Conditions, over: Horizon) -> list[str]:
    """Where λ is below what Theorem 1 asks for."""
    if over.regularization >= asked.regularization:
        return []
    return [
        f"the bound is not proved here: Theorem 1 asks for λ ≥ max(1, S⁻²) = {asked.regularization:.3g}, and λ is "
        f"{over.regularization:g}"
    ]
