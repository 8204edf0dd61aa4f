"""Gymnasium both ways: a problem as an environment, and a bandit that acts in an environment. Needs `gymnasium`."""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from neuralucb.online.bandit import OnlineBandit
from neuralucb.policy import Slot
from neuralucb.problems import Problem, check_problem
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import exact
from neuralucb.settings import check_integer
from neuralucb.simulation import draw_round, draw_world

if TYPE_CHECKING:
    import gymnasium

__all__ = ["Played", "as_environment", "play_environment"]

LARGEST = float(np.finfo(np.float32).max)


class Played(NamedTuple):
    """What a bandit did in an environment, step by step.

    Example:
        >>> played = Played(np.array([0, 1]), np.array([0.5, 1.0]), regret=None)
        >>> played.rewards.sum()
        np.float64(1.5)
    """

    arms: np.ndarray
    """[rounds] actions taken, from 0"""
    rewards: np.ndarray
    """[rounds] rewards seen"""
    regret: np.ndarray | None
    """[rounds] of each step, if the environment's `info` has it, as that of `as_environment` does"""


def as_environment(problem: Problem, *, rounds: int) -> "gymnasium.Env[np.ndarray, np.int64]":
    """A problem as a Gymnasium environment: an observation is the contexts of all arms, an action is an arm.

    Observations are (K, d), or (d,) where arms share one context. `reset(seed=s)` begins the rounds that a run with
    seed s meets; an episode is truncated after `rounds` steps. After a step, `info` has the expected rewards of all
    arms and the step's regret.

    Args:
        problem: Made by `synthetic`, `labelled`, `rewards` or `from_function`, or with functions of your own.
        rounds: Steps of an episode.

    Returns:
        An environment that passes Gymnasium's `check_env`.

    Raises:
        InputError: If gymnasium is not installed, the problem has fewer rounds, or its contexts are not arrays (K, d).

    Example:
        >>> from neuralucb import as_environment, synthetic
        >>> environment = as_environment(synthetic("h1", dim=4, arms=3), rounds=100)
        >>> observation, info = environment.reset(seed=0)
        >>> observation.shape
        (3, 4)
    """
    gymnasium = _require_gymnasium()
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be a Problem, got {problem!r}; make one with build_problem, synthetic, ….")
    rounds = check_integer("rounds", rounds, 1)
    check_problem(problem)
    if problem.limit is not None and rounds > problem.limit:
        raise InputError(
            f"rounds must be at most {problem.limit}, the rows of {problem.name}, got {rounds}; or make the problem "
            "with repeat=True."
        )
    environment = _environment_class(gymnasium, problem, rounds)
    spec = gymnasium.envs.registration.EnvSpec(
        f"neuralucb/{_slug(problem.name)}-v0", entry_point=environment, disable_env_checker=True, order_enforce=False
    )
    environment.spec = spec
    return environment()


def play_environment(
    bandit: OnlineBandit, environment: "gymnasium.Env[Any, Any]", *, rounds: int, seed: int = 0
) -> Played:
    """Let a bandit act in a Gymnasium environment, one decision and one reward per step.

    A bandit looks one step ahead: it learns which action pays now, not which state is worth going to.

    Args:
        bandit: Its policy fits the observations: `build(…, dim=d)` for observations (K, d), or
            `build(…, dim=d, shared_by=K)` for observations (d,) and K discrete actions.
        environment: Its actions are discrete, its observations are arrays; a new episode begins when one ends.
        rounds: Steps to take.
        seed: Of the first `reset`.

    Returns:
        Actions, rewards and, where the environment tells it, regret.

    Raises:
        InputError: If gymnasium is not installed, or the bandit does not fit the environment.

    Example:
        >>> from neuralucb import OnlineBandit, as_environment, build, synthetic
        >>> environment = as_environment(synthetic("h1", dim=4, arms=3), rounds=100)
        >>> bandit = OnlineBandit(build("lin-ucb", dim=4))
        >>> played = play_environment(bandit, environment, rounds=100)
        >>> played.rewards.shape
        (100,)
    """
    gymnasium = _require_gymnasium()
    rounds = check_integer("rounds", rounds, 1)
    count = _check_fit(gymnasium, bandit, environment)
    actions: Any = environment.action_space
    arms, rewards, regret = np.empty(rounds, np.int64), np.empty(rounds), np.full(rounds, np.nan)
    seen, _ = environment.reset(seed=seed)
    for t in range(rounds):
        decision = bandit.select(_contexts(np.asarray(seen, np.float32), count))
        arms[t] = decision.position
        seen, reward, ended, cut, info = environment.step(np.int64(actions.start + decision.position))
        rewards[t], regret[t] = float(reward), info.get("regret", np.nan)
        bandit.observe(decision.id, rewards[t])
        if ended or cut:
            seen, _ = environment.reset()
    return Played(arms, rewards, None if np.isnan(regret).any() else regret)


def _environment_class(gymnasium: Any, problem: Problem, rounds: int) -> Any:
    """The class of a problem's environments; made here, since its base is only known where gymnasium is installed."""
    data = jax.device_put(problem.data)
    begin = jax.jit(lambda seed, data: draw_world(jax.random.key(seed), problem, data))
    draw = jax.jit(lambda seed, data, world, t: draw_round(jax.random.key(seed), problem, data, world, t))

    class Environment(gymnasium.Env):  # type: ignore[misc]
        metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

        def __init__(self, render_mode: str | None = None) -> None:
            shape = (problem.dim,) if problem.shared else (problem.arms, problem.dim)
            self.render_mode = render_mode
            self.observation_space = gymnasium.spaces.Box(-LARGEST, LARGEST, shape, np.float32)
            self.action_space = gymnasium.spaces.Discrete(problem.arms)
            self.episode, self.world, self.t = np.uint32(0), None, rounds
            self.now: Any = None

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[np.ndarray, dict[str, Any]]:
            super().reset(seed=seed)
            self.episode = np.uint32(self.np_random.integers(2**32) if seed is None else seed % 2**32)
            self.world, self.t = exact(begin)(self.episode, data), 0
            return self.observe(), {}

        def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
            if self.t >= rounds:
                raise gymnasium.error.ResetNeeded("the episode is over, or has not begun; call reset first.")
            if not self.action_space.contains(action):
                raise InputError(f"action must be a whole number from 0 to {problem.arms - 1}, got {action!r}.")
            unit, expected = np.float32(problem.unit), np.asarray(self.now.expected, np.float32)
            reward = float(unit * (expected[action] + np.float32(self.now.noise)))
            regret = float(unit * (expected.max() - expected[action]))
            self.t += 1
            info = {"expected": unit * expected, "regret": regret}
            return self.observe(), reward, False, self.t == rounds, info

        def observe(self) -> np.ndarray:
            """The contexts of round t; after the last, those of the last again."""
            if self.t < rounds:
                self.now = exact(draw)(self.episode, data, self.world, np.int32(self.t))
            contexts = self.now.contexts
            x = np.asarray(contexts.x)[0] if isinstance(contexts, Slot) else np.asarray(contexts)
            return np.array(x.reshape(self.observation_space.shape), np.float32)

    return Environment


def _check_fit(gymnasium: Any, bandit: OnlineBandit, environment: Any) -> int:
    """K, if the bandit can act in the environment."""
    actions, observations = environment.action_space, environment.observation_space
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise InputError(f"environment must have discrete actions, got {actions}.")
    if not isinstance(observations, gymnasium.spaces.Box) or len(observations.shape) not in (1, 2):
        raise InputError(
            f"environment must have observations (d,) or (K, d), got {observations}; wrap it in "
            "gymnasium.wrappers.FlattenObservation."
        )
    arms, dim, shape = int(actions.n), observations.shape[-1], bandit.state.shape
    shared = len(observations.shape) == 1
    slots = bandit.state.arms.capacity
    fits = shape.is_slot and slots == arms if shared else shape.is_vector and observations.shape[0] == arms
    if not fits or shape.leaves[0][0] != (dim,) or bandit.state.arms.ids:
        needs = f"build(…, dim={dim}, shared_by={arms})" if shared else f"build(…, dim={dim})"
        raise InputError(
            f"bandit must have a policy made by {needs}, and no arms added, for {arms} actions and observations "
            f"{observations.shape}; its contexts are {shape.describe(1)}."
        )
    return arms


def _contexts(seen: np.ndarray, arms: int) -> Any:
    """What a bandit takes for an observation (K, d), or (d,) that all arms share."""
    if seen.ndim == 2:
        return seen
    return Slot._make((np.broadcast_to(seen, (arms, len(seen))), np.arange(arms, dtype=np.int32)))


def _slug(name: str) -> str:
    """A name as Gymnasium takes it: letters, digits, and - or _ between them."""
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)
    return kept.strip("-") or "problem"


def _require_gymnasium() -> Any:
    try:
        import gymnasium
    except ImportError:
        raise InputError("gymnasium is not installed; pip install 'neuralucb[gymnasium]' brings it.") from None
    return gymnasium
