"""Coverage: how often the expected reward h(x) lies inside f(x) ± γ·width while an algorithm plays."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from neuralucb.algorithms import Task, find_algorithm
from neuralucb.experiments import Plan, plan
from neuralucb.experiments.statistics import finite_or_none
from neuralucb.history import History
from neuralucb.policy import Choice, Info, Note, Noted, Policy
from neuralucb.problems import Problem, Round, find_problem
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import exact
from neuralucb.runtime.progress import Progress
from neuralucb.runtime.records import brief
from neuralucb.runtime.threads import spread
from neuralucb.schedules import Schedule
from neuralucb.simulation import simulate

__all__ = ["Coverage", "Mode", "coverage_json", "measure_coverage", "plan_coverage", "play_coverage"]

ARMS = ("chosen", "random")

STEP_SIZE = 0.04
"""The default 0.05 makes ηmλ = 1 at m = 20, λ = 1, where the theoretical γ_t has no meaning."""


@brief
class Coverage(NamedTuple):
    """What was predicted for two arms per round, before its reward was known: the chosen one, and one at random.

    The first three arrays are [seeds, rounds, 2]: chosen, random.

    Example:
        >>> from neuralucb import build, synthetic, theory
        >>> policy, problem = build("lin-ucb", dim=4, exploration=0.1), synthetic("h1", dim=4)
        >>> found = theory.measure_coverage(policy, problem, rounds=20, schedule="10", seeds=[0])
        >>> found.width.shape  # seeds, rounds, the chosen arm and a random one
        (1, 20, 2)
    """

    error: np.ndarray
    """|f(x; θ_{t-1}) - h(x)|"""
    width: np.ndarray
    """sqrt(gᵀZ⁻¹g/m), not yet multiplied by γ"""
    scale: np.ndarray
    """γ_{t-1}"""
    diverged: np.ndarray
    """[seeds] whether training diverged"""

    @property
    def inside(self) -> np.ndarray:
        """Whether h(x) lies inside f ± γ·width; never for a prediction that is not finite."""
        return self.error <= self.scale * self.width

    @property
    def ratio(self) -> np.ndarray:
        """The smallest γ with which h(x) would lie inside; infinite for a prediction that is not finite."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.error == 0, 0, self.error / self.width)
        return np.nan_to_num(ratio, nan=np.inf, posinf=np.inf)

    def share(self) -> np.ndarray:
        """[2] how often h(x) lies inside, over all rounds and seeds."""
        return np.asarray(self.inside.mean(axis=(0, 1)))

    def needed_scale(self, share: float = 0.9) -> np.ndarray:
        """[2] the γ, the same in all rounds, with which that share would have been inside."""
        return np.asarray(np.quantile(self.ratio, share, axis=(0, 1), method="higher"))

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary; numbers that are not finite are None."""
        share, needed = self.share(), self.needed_scale()
        return {
            "coverage": {arm: float(value) for arm, value in zip(ARMS, share, strict=True)},
            "scale_at_end": finite_or_none(self.scale[:, -1].mean()),
            "scale_for_90_percent": {arm: finite_or_none(value) for arm, value in zip(ARMS, needed, strict=True)},
            "diverged": int(self.diverged.sum()),
        }


class Mode(NamedTuple):
    """A kind of γ and a kind of Z: settings of NeuralUCB."""

    confidence: str
    design: str


MODES = tuple(Mode(confidence, design) for confidence in ("constant", "theoretical") for design in ("full", "diagonal"))


class _Watched(NamedTuple):
    """The policy's belief, and beside it the record so far."""

    belief: Any
    record: jax.Array
    """[T, 3, 2]: error, width, scale"""
    rounds: jax.Array


class _Pair(NamedTuple):
    """A context, the context of an arm drawn at random, and the expected rewards of both."""

    context: Any
    other: Any
    expected: jax.Array
    """[2]"""


def measure_coverage(
    policy: Policy,
    problem: Problem,
    *,
    rounds: int,
    schedule: str | Schedule,
    seeds: Sequence[int],
    progress: Progress | None = None,
) -> Coverage:
    """How often the intervals of a policy hold while it plays a problem, one run per seed.

    The runs are those of `simulate` with the same keys: measuring changes nothing.

    Args:
        policy: One whose choices have a mean, a width and a scale, such as NeuralUCB or LinUCB.
        problem: One whose expected rewards are known, such as `synthetic("h1")`.
        rounds: T.
        schedule: When to learn, such as "50"; see `read_schedule`.
        seeds: One run for each.
        progress: Called with the runs done and the total.

    Returns:
        Errors, widths and scales of every seed and round.

    Example:
        >>> from neuralucb import build, synthetic, theory
        >>> policy, problem = build("lin-ucb", dim=4, exploration=0.1), synthetic("h1", dim=4)
        >>> found = theory.measure_coverage(policy, problem, rounds=20, schedule="10", seeds=[0])
        >>> found.error.shape
        (1, 20, 2)
    """
    watched, paired = _watch(policy, rounds), _pair(problem)
    runs: list[Any] = [None] * len(seeds)

    @exact
    def compiled() -> Any:
        run = jax.jit(lambda key: simulate(key, watched, paired, rounds=rounds, schedule=schedule))
        return run.lower(random.key(0)).compile()

    play = compiled()

    def one(index: int) -> None:
        outcome = exact(play)(random.key(seeds[index]))
        runs[index] = np.asarray(outcome.belief.record), bool(outcome.trace.diverged_at > 0)

    spread(one, range(len(seeds)), progress)
    record = np.stack([run[0] for run in runs])
    return Coverage(record[:, :, 0], record[:, :, 1], record[:, :, 2], np.asarray([run[1] for run in runs]))


def plan_coverage(
    problem: str,
    settings: Mapping[str, Any],
    *,
    rounds: int,
    seeds: int,
    preset: str | None = None,
    schedule: str | None = None,
) -> dict[Mode, Plan]:
    """NeuralUCB on a synthetic problem with every kind of γ and Z, bad input refused; `play_coverage` plays one."""
    definition = find_problem(problem)
    if definition.shared:
        raise InputError(f"problem must be synthetic, h1, h2 or h3, whose expected rewards are known, got {problem}.")
    for name in Mode._fields:
        if name in settings:
            raise InputError(f"{name} must not be set, got {settings[name]}; coverage plays all of them.")
    given = {"step_size": STEP_SIZE, **settings}
    options: dict[str, Any] = {"rounds": rounds, "seeds": seeds, "preset": preset, "schedule": schedule}
    return {mode: plan(definition, {"neural-ucb": mode._asdict()}, given, **options) for mode in MODES}


def play_coverage(planned: Plan, progress: Progress | None = None) -> Coverage:
    """The coverage of one algorithm with one setting, as planned."""
    ((algorithm, (point,)),) = planned.points.items()
    problem = planned.problem.make(**point.problem)
    task = Task(problem.dim, planned.rounds, problem.shared_by)
    return measure_coverage(
        find_algorithm(algorithm).recipe(task, point.algorithm),
        problem,
        rounds=planned.rounds,
        schedule=planned.schedule,
        seeds=planned.seeds,
        progress=progress,
    )


def coverage_json(plans: Mapping[Mode, Plan], measured: Mapping[Mode, Coverage]) -> dict[str, Any]:
    """A plain dictionary of what was planned and what was measured, mode by mode."""
    first = next(iter(plans.values()))
    results = []
    for mode, found in measured.items():
        ((point,),) = plans[mode].points.values()
        results.append({**mode._asdict(), **found.as_json(), "settings": {**point.algorithm, **point.problem}})
    return {"problem": first.problem.name, "rounds": first.rounds, "seeds": list(first.seeds), "results": results}


def _watch(policy: Policy, rounds: int) -> Policy:
    """The policy, recording in its belief what it predicted for each pair of contexts."""

    def init(key: jax.Array) -> _Watched:
        return _Watched(policy.init(key), jnp.zeros((rounds, 3, 2), jnp.float64), jnp.int32(0))

    def select(key: jax.Array, watched: _Watched, pairs: _Pair, available: jax.Array | None = None) -> Choice:
        return policy.select(key, watched.belief, pairs.context, available)

    def take(watched: _Watched, pairs: _Pair, available: jax.Array, choice: Choice) -> jax.Array:
        assert policy.note is not None
        return policy.note.take(watched.belief, pairs.context, available, choice)

    def observe(watched: _Watched, kept: _Pair | Noted, reward: jax.Array) -> _Watched:
        pair = kept.context if isinstance(kept, Noted) else kept
        own = Noted(pair.context, kept.note) if isinstance(kept, Noted) else pair.context
        both = jax.tree.map(lambda a, b: jnp.stack([a, b]), pair.context, pair.other)
        predicted = policy.select(random.key(0), watched.belief, both)  # which arm it chooses is ignored
        error = jnp.abs(predicted.mean - pair.expected.astype(predicted.mean.dtype))
        scale = jnp.broadcast_to(predicted.exploration, error.shape)
        row = jnp.stack([error, predicted.width, scale]).astype(jnp.float64)
        return _Watched(
            policy.observe(watched.belief, own, reward),
            watched.record.at[watched.rounds].set(row),
            watched.rounds + 1,
        )

    def learn(key: jax.Array, watched: _Watched, history: History) -> tuple[_Watched, Info]:
        belief, info = policy.learn(key, watched.belief, history._replace(contexts=history.contexts.context))
        return watched._replace(belief=belief), info

    note = None if policy.note is None else Note(policy.note.size, take)
    return Policy(init, select, observe, learn, note=note)


def _pair(problem: Problem) -> Problem:
    """The problem, each arm's context paired with that of an arm drawn at random."""

    def draw(key: jax.Array, data: Any, world: Any, t: jax.Array) -> Round:
        now = problem.draw(key, data, world, t)
        arm = random.randint(random.fold_in(key, 1), (), 0, problem.arms, dtype=jnp.int32)
        other = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[arm], leaf.shape), now.contexts)
        expected = jnp.stack([now.expected, jnp.broadcast_to(now.expected[arm], now.expected.shape)], axis=1)
        return now._replace(contexts=_Pair(now.contexts, other, expected))

    return problem._replace(draw=draw)
