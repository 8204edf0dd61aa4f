"""The theory of one planned run of NeuralUCB: d̃, λ_0, S, the bound, and notes on where the theorem does not apply."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.confidence import Assumptions
from neuralucb.experiments import Plan, Result
from neuralucb.experiments.statistics import finite_or_none
from neuralucb.policy import Slot
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.memory import host_bytes, require_memory
from neuralucb.runtime.progress import Meter
from neuralucb.runtime.records import brief
from neuralucb.simulation import draw_rounds
from neuralucb.theory.bounds import Conditions, Horizon, conditions, corollary_1, least_steps, theorem_1
from neuralucb.theory.dimension import dimension_from_eigenvalues, dimensions_over_rounds, effective_dimension_of
from neuralucb.theory.directions import Directions, directions, first_of_direction
from neuralucb.theory.kernel import LIMITS, tangent_kernel
from neuralucb.theory.norm import rounding, squared_norms

__all__ = ["Report", "analyse"]

CURVE_POINTS = 60
"""Of the curves over rounds."""

DECADES = 3
"""Of λ on either side of 1, for d̃ against λ; more where the λ of the run lies beyond."""

POINTS_PER_DECADE = 4
"""Of that curve."""

AGREE = 1e-6
"""Relative: how far d̃ by Cholesky and by eigenvalues may differ without a note."""

EXACT_MEMORY = 2.25
"""Memory that the exact computation takes, relative to H: H itself, and a copy for its eigenvalues or its factor."""

CONTEXT_BYTES = 28
"""Per number of a context: one float32 as it is drawn, and three float64 while its direction is computed."""

UNIT = 1e-5
"""How far float32 may leave a norm of 1 from 1."""

NONE = np.zeros(0)


@brief
class Report(NamedTuple):
    """The theory of one problem, on the contexts of one seed. What cannot be computed is None, and `notes` says why.

    Example:
        >>> from neuralucb import theory
        >>> from neuralucb.experiments import plan
        >>> report = theory.analyse(plan("h1", ["neural-ucb"], {"dim": 4}, rounds=10, seeds=1))
        >>> report.over.arms
        4
    """

    problem: str
    seed: int
    over: Horizon
    dim: int
    width: int
    initialization: str
    """whose limit the kernel is"""
    largest_reward: float
    effective_dimension: float
    """d̃; NaN where λ is lost in rounding"""
    effective_dimension_error: float = 0.0
    """0 where d̃ is exact"""
    lambda_0: float | None = None
    norm: float | None = None
    """S = sqrt(2 hᵀH⁻¹h)"""
    steps: int | None = None
    """J, corrected"""
    bound: float | None = None
    """Theorem 1"""
    expected_bound: float | None = None
    """Corollary 1"""
    conditions: Conditions | None = None
    repeated: int = 0
    """contexts that repeat a direction, or are 0"""
    notes: tuple[str, ...] = ()
    eigenvalues: np.ndarray | None = None
    """of H, largest first"""
    rounds: np.ndarray = NONE
    """t, of the two curves"""
    dimensions: np.ndarray = NONE
    """d̃ after t rounds"""
    bounds: np.ndarray = NONE
    """Theorem 1 after t rounds; NaN where it says nothing"""

    def dimensions_by_regularization(self) -> tuple[np.ndarray, np.ndarray]:
        """Values of λ, and d̃ for each; empty where there are no eigenvalues."""
        if self.eigenvalues is None:
            return NONE, NONE
        log_lambda = math.log10(self.over.regularization)
        low, high = min(-DECADES, math.floor(log_lambda)), max(DECADES, math.ceil(log_lambda))
        grid = np.logspace(low, high, POINTS_PER_DECADE * (high - low) + 1)
        lambdas = np.union1d(grid, self.over.regularization)
        found = [dimension_from_eigenvalues(self.eigenvalues, regularization=float(one)) for one in lambdas]
        return lambdas, np.asarray(found)

    def as_json(self, measured: Result) -> dict[str, Any]:
        """A plain dictionary, with the measured regret beside the theory; what cannot be computed is None."""
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


class _Case(NamedTuple):
    """What the theory takes from a planned run: its contexts and rewards, λ and L, and the kernel's limit."""

    over: Horizon
    contexts: Directions
    """of all rounds and arms, in the order in which they came"""
    rewards: np.ndarray
    """h [TK], expected"""
    noise: np.ndarray
    """[T] as drawn"""
    settings: dict[str, Any]
    """of the algorithm"""
    problem_settings: dict[str, Any]
    initialization: str

    @property
    def limit(self) -> dict[str, Any]:
        """Which kernel."""
        return {"depth": self.over.depth, "initialization": self.initialization}


class _Noted(NamedTuple):
    """A number for every round or context, and notes on how it came about."""

    values: np.ndarray
    notes: tuple[str, ...] = ()


def analyse(plan: Plan, meter: Meter = lambda what: None) -> Report:
    """The theory of a planned run of NeuralUCB, on the contexts of its first seed.

    Contexts of the same direction, such as a row of a data set that comes twice, make H singular. d̃ counts them all, as
    Definition 2 does; λ_0 is then 0; S is computed from the first of each direction if rewards agree (h(cx) = c h(x),
    as for every network without biases), and is infinite if they do not. Where H of those is still singular to working
    precision, S, J and the bound are None. So are they, and λ_0, where H does not fit into memory; d̃ is then estimated.

    Args:
        plan: One algorithm, `neural-ucb`, with one setting, as `experiments.plan` returns it.
        meter: Given the name of a stage ("kernel", "eigenvalues", "d̃", "S"), returns its progress or None.

    Returns:
        The report.

    Raises:
        InputError: The contexts alone do not fit into memory, or the contexts or λ leave float64.

    Example:
        >>> from neuralucb import theory
        >>> from neuralucb.experiments import plan
        >>> report = theory.analyse(plan("h1", ["neural-ucb"], {"dim": 4}, rounds=10, seeds=1))
        >>> report.over.rounds, report.lambda_0 > 0
        (10, True)
    """
    ((point,),) = plan.points.values()
    problem, settings, seed = plan.problem.make(**point.problem), point.algorithm, plan.seeds[0]
    if problem.unit != 1:
        raise InputError(
            f"{problem.name} has rewards in units of {problem.unit:g}, and the bound is about rewards as the algorithm "
            "sees them; set reward_scaling=none."
        )
    over = Horizon(plan.rounds, problem.arms, settings["depth"], settings["regularization"])
    count = over.rounds * over.arms
    require_memory(
        count * problem.dim * CONTEXT_BYTES, what=f"the theory of {count} contexts", cure="play fewer rounds", host=True
    )
    drawn = draw_rounds(jax.random.key(seed), problem, rounds=plan.rounds)
    case = _Case(
        over=over,
        contexts=directions(_flat(drawn.contexts)),
        rewards=np.asarray(drawn.expected, np.float64).ravel(),
        noise=np.asarray(drawn.noise),
        settings=settings,
        problem_settings=point.problem,
        initialization=settings["initialization"] if settings["initialization"] in LIMITS else "gaussian",
    )
    report = Report(
        problem=plan.problem.name,
        seed=seed,
        over=over,
        dim=problem.dim,
        width=settings["width"],
        initialization=case.initialization,
        largest_reward=float(case.rewards.max()),
        effective_dimension=math.nan,
        notes=_departures(case, shared=problem.shared),
    )
    fits = EXACT_MEMORY * 8 * count**2 <= host_bytes()
    return _computed(report, case, meter) if fits else _estimated(report, case, meter)


def _estimated(report: Report, case: _Case, meter: Meter) -> Report:
    """The report without H: d̃ alone."""
    found = effective_dimension_of(
        case.contexts, regularization=case.over.regularization, progress=meter("d̃"), **case.limit
    )
    kind = "an estimate" if found.error else "exact"
    note = (
        f"H of {len(case.contexts)} contexts does not fit into memory: d̃ is {kind}, "
        "and λ_0, S and the bound are left out; play fewer rounds for them"
    )
    return report._replace(
        effective_dimension=found.value, effective_dimension_error=found.error, notes=(*report.notes, note)
    )


def _computed(report: Report, case: _Case, meter: Meter) -> Report:
    """The report from H itself."""
    kernel = tangent_kernel(case.contexts, progress=meter("kernel"), **case.limit)
    first = first_of_direction(case.contexts)
    with _stage(meter, "eigenvalues"):
        values = np.linalg.eigvalsh(kernel)
    dimensions = _dimensions(kernel.copy(), values, case.over, meter)
    repeated = int((first != np.arange(len(first))).sum() + (case.contexts.norm == 0).sum())
    regular = repeated == 0 and values[0] > rounding(values)
    if regular or repeated:
        with _stage(meter, "S"):
            norms = _squared_norms(kernel, case, first)
    else:
        note = (
            f"H is singular to working precision (smallest eigenvalue {values[0]:.2g}), though no two contexts have "
            "the same direction: S and the bound are left out"
        )
        norms = _Noted(np.full(len(first), np.inf), (note,))
    noise_bound, noise_notes = _noise(case)
    report = report._replace(
        effective_dimension=float(dimensions.values[-1]),
        lambda_0=float(values[0]) if regular else 0.0,
        repeated=repeated,
        eigenvalues=values[::-1],
        notes=(*report.notes, *noise_notes, *dimensions.notes, *norms.notes),
    )
    constants = tuple(case.settings[f"constant_{i}"] for i in (1, 2, 3))
    assumed = Assumptions(noise_bound, case.settings["failure"], norm=0.0, constants=constants)
    return _with_bounds(report, assumed, dimensions.values, norms.values)


@contextmanager
def _stage(meter: Meter, name: str) -> Iterator[None]:
    """A stage that is one call, and so has no progress but its end."""
    progress = meter(name)
    yield
    if progress is not None:
        progress(1, 1)


def _dimensions(kernel: np.ndarray, eigenvalues: np.ndarray, over: Horizon, meter: Meter) -> _Noted:
    """d̃ after every round, by Cholesky, checked at the end against the eigenvalues; NaN where λ is lost in rounding."""
    try:
        found = dimensions_over_rounds(kernel, arms=over.arms, regularization=over.regularization, progress=meter("d̃"))
    except InputError as problem:
        note = f"d̃ and the bound are left out: {str(problem).rstrip('.')}"
        return _Noted(np.full(over.rounds, np.nan), (note,))
    other = dimension_from_eigenvalues(eigenvalues, regularization=over.regularization)
    if math.isclose(found[-1], other, rel_tol=AGREE):
        return _Noted(found)
    note = (
        f"d̃ is {found[-1]:.8g} by Cholesky and {other:.8g} by eigenvalues: with a λ as small as "
        f"{over.regularization:g}, only the digits that they share are right"
    )
    return _Noted(found, (note,))


def _squared_norms(kernel: np.ndarray, case: _Case, first: np.ndarray) -> _Noted:
    """hᵀH⁻¹h of the contexts up to each, from the first of each direction; infinite once rewards contradict."""
    known, h, notes = case.contexts, case.rewards, []
    zero = known.norm == 0
    repeats = (first != np.arange(len(first))) & ~zero
    new, later = np.flatnonzero(~repeats & ~zero), np.flatnonzero(repeats)
    if later.size:
        notes.append(
            f"{later.size} context{' repeats' if later.size == 1 else 's repeat'} a direction (the first: context "
            f"{later[0]}, that of {first[later[0]]}), so that H is singular and λ_0 = 0; "
            "S is computed from the first of each direction"
        )
    if zero.any():
        notes.append(f"context {np.flatnonzero(zero)[0]} is 0, where every network is 0, so that λ_0 = 0")
    added = np.zeros(len(h))
    try:
        kept = kernel if len(new) == len(h) else kernel[np.ix_(new, new)]
        added[new] = np.diff(squared_norms(kept, h[new]), prepend=0.0) if new.size else 0.0
    except (InputError, np.linalg.LinAlgError) as problem:
        return _Noted(np.full(len(h), np.inf), (*notes, f"S cannot be computed: {str(problem).rstrip('.')}"))
    ratio = known.norm[later] / known.norm[first[later]]
    at_odds = later[~np.isclose(h[later], ratio * h[first[later]], rtol=1e-5, atol=1e-6)]
    impossible = np.concatenate([at_odds, np.flatnonzero(zero & (h != 0))])
    if impossible.size:
        row = int(impossible.min())
        fault = f"contexts {first[row]} and {row} have the same direction, but rewards that contradict each other"
        if zero[row]:
            fault = f"context {row} is 0, and its reward is not"
        notes.append(f"S is infinite: {fault}; no network can fit that")
        added[row] = np.inf
    return _Noted(np.cumsum(added), tuple(notes))


def _with_bounds(report: Report, assumed: Assumptions, dimensions: np.ndarray, squared_norms: np.ndarray) -> Report:
    """The report with S, J, the bounds after all rounds and on the way there, and their conditions."""
    over = report.over
    rounds = np.unique(np.linspace(1, over.rounds, min(CURVE_POINTS, over.rounds)).astype(int))
    norms = np.sqrt(2 * squared_norms[over.arms * rounds - 1])
    curve = [
        _bound_after(int(t), float(norm), float(dimensions[t - 1]), assumed, over)
        for t, norm in zip(rounds, norms, strict=True)
    ]
    bounds, notes = np.asarray([bound for bound, _ in curve]), (*report.notes, *curve[-1][1])
    report = report._replace(rounds=rounds, dimensions=dimensions[rounds - 1], bounds=bounds, notes=notes)
    if not math.isfinite(norms[-1]):
        return report
    final = assumed._replace(norm=float(norms[-1]))
    needed = conditions(final, over, width=report.width, smallest_eigenvalue=report.lambda_0 or 0.0)
    report = report._replace(norm=float(norms[-1]), conditions=needed)
    if math.isnan(bounds[-1]):
        return report
    steps = least_steps(final, over)
    return report._replace(
        notes=(*notes, *_not_proved(needed, over)),
        steps=steps,
        bound=float(bounds[-1]),
        expected_bound=corollary_1(float(dimensions[-1]), final, over, steps=steps),
    )


def _bound_after(
    rounds: int, norm: float, dimension: float, assumed: Assumptions, over: Horizon
) -> tuple[float, tuple[str, ...]]:
    """Theorem 1 after so many rounds, or NaN: with a note, unless S or d̃ is missing and already noted."""
    if not 0 < norm < math.inf or math.isnan(dimension):
        return math.nan, ()
    then, until = assumed._replace(norm=norm), over._replace(rounds=rounds)
    try:
        return theorem_1(dimension, then, until, steps=least_steps(then, until)), ()
    except InputError as problem:
        return math.nan, (f"no bound: {str(problem).rstrip('.')}",)


def _departures(case: _Case, *, shared: bool) -> tuple[str, ...]:
    """Notes on what the network that is played, or the problem, has that the theory does not."""
    settings, known, h = case.settings, case.contexts, case.rewards
    of_theory = {"scaling": "tangent", "biases": False} | ({"encoding": "disjoint"} if shared else {})
    other = [f"{name}={settings[name]}" for name, value in of_theory.items() if settings[name] != value]
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
    return tuple(notes)


def _noise(case: _Case) -> tuple[float, tuple[str, ...]]:
    """ν of the bounds: noise_bound, or the problem's noise where that is larger, with a note.

    Where the settings of a problem do not give its noise, the noise that was drawn is taken, three standard errors
    allowed. Labelled rows have none, so that any ν will do.
    """
    assumed, given = float(case.settings["noise_bound"]), case.problem_settings
    noise = float(given["noise"]) if "noise" in given else float(np.sqrt(np.mean(np.square(case.noise))))
    slack = 1.0 if "noise" in given else 1 + 3 / math.sqrt(2 * len(case.noise))
    if noise <= assumed * slack:
        return assumed, ()
    return noise, (
        f"ν is the problem's noise, {noise:.3g}: noise_bound={assumed:g}, which γ_t of the run uses, is below it",
    )


def _not_proved(needed: Conditions, over: Horizon) -> tuple[str, ...]:
    """A note where λ is below what Theorem 1 asks for."""
    if over.regularization >= needed.regularization:
        return ()
    return (
        f"the bound is not proved here: Theorem 1 asks for λ ≥ max(1, S⁻²) = {needed.regularization:.3g}, and λ is "
        f"{over.regularization:g}",
    )


def _flat(contexts: Any) -> Any:
    """Contexts of all rounds and arms on one axis, in the order in which they came."""
    flat = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:]), contexts)
    return Slot(*flat) if isinstance(contexts, Slot) else flat
