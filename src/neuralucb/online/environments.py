"""Gymnasium both ways: a problem as an environment, and a bandit in front of an environment. Needs `gymnasium`."""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from neuralucb.online.bandit import OnlineBandit
from neuralucb.policy import Slot
from neuralucb.problems import Problem
from neuralucb.runtime.errors import InputError
from neuralucb.settings import check_integer
from neuralucb.simulation import draw_rounds

if TYPE_CHECKING:
    import gymnasium

__all__ = ["Played", "as_environment", "play_environment"]

LARGEST = float(np.finfo(np.float32).max)


class Played(NamedTuple):
    """What a bandit did in an environment, step by step."""

    arms: np.ndarray
    """[rounds] actions taken"""
    rewards: np.ndarray
    """[rounds] rewards seen"""


def as_environment(problem: Problem, *, rounds: int) -> "gymnasium.Env[Any, Any]":
    """A problem as a Gymnasium environment: an observation is the contexts of all arms, an action is an arm.

    Observations are (K, d), or (d,) where arms share one context. Every `reset` draws a new world from its seed, and an
    episode is truncated after `rounds` steps. `info` has the expected rewards and the regret of the step.

    Args:
        problem: made by `synthetic`, `labelled`, `rewards`, `from_function`, or your own.
        rounds: steps of an episode.

    Returns:
        An environment that passes Gymnasium's `check_env`.

    Raises:
        InputError: if gymnasium is not installed, or the problem has fewer rounds.
    """
    gymnasium = _require_gymnasium()
    rounds = check_integer("rounds", rounds, 1)
    if problem.limit is not None and rounds > problem.limit:
        raise InputError(f"rounds must be at most {problem.limit}, the rows of {problem.name}, got {rounds}.")
    draw = jax.jit(lambda seed: draw_rounds(jax.random.key(seed), problem, rounds=rounds))

    class Environment(gymnasium.Env):  # type: ignore[misc, name-defined]
        metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

        def __init__(self) -> None:
            shape = (problem.dim,) if problem.shared else (problem.arms, problem.dim)
            self.observation_space = gymnasium.spaces.Box(-LARGEST, LARGEST, shape, np.float32)
            self.action_space = gymnasium.spaces.Discrete(problem.arms)
            self.drawn: Any = None
            self.t = 0

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[Any, dict[str, Any]]:
            super().reset(seed=seed)
            world = int(self.np_random.integers(2**32)) if seed is None else seed % 2**32
            self.drawn, self.t = jax.tree.map(np.asarray, draw(np.uint32(world))), 0
            return self.observation(), {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            if self.drawn is None or self.t >= rounds:
                raise InputError("the episode is over, or was not begun; call reset first.")
            expected = self.drawn.expected[self.t]
            reward = float(expected[int(action)] + self.drawn.noise[self.t])
            info = {"expected": expected, "regret": float(expected.max() - expected[int(action)])}
            self.t += 1
            return self.observation(), reward, False, self.t == rounds, info

        def observation(self) -> np.ndarray:
            contexts = self.drawn.contexts
            t = min(self.t, rounds - 1)  # after the last step there is nothing new to see
            return np.array(contexts.x[t, 0] if isinstance(contexts, Slot) else contexts[t], np.float32)

    return Environment()


def play_environment(
    bandit: OnlineBandit, environment: "gymnasium.Env[Any, Any]", *, rounds: int, seed: int = 0
) -> Played:
    """Let a bandit act in a Gymnasium environment, one decision and one reward per step.

    Args:
        bandit: its policy fits the observations: `build(…, dim=d)` for observations (K, d), or
            `build(…, dim=d, shared_by=K)` for observations (d,) and K discrete actions.
        environment: with discrete actions; a new episode begins when one ends.
        rounds: steps to take.
        seed: of the first `reset`.

    Returns:
        Actions and rewards.

    Raises:
        InputError: if the environment's actions are not discrete.
    """
    gymnasium = _require_gymnasium()
    rounds = check_integer("rounds", rounds, 1)
    if not isinstance(environment.action_space, gymnasium.spaces.Discrete):
        raise InputError(f"environment must have discrete actions, got {environment.action_space}.")
    first = int(environment.action_space.start)
    arms, rewards = np.empty(rounds, np.int64), np.empty(rounds)
    seen, _ = environment.reset(seed=seed)
    for t in range(rounds):
        decision = bandit.select(np.asarray(seen, np.float32))
        arms[t] = first + decision.position
        seen, rewards[t], ended, cut, _ = environment.step(arms[t])
        bandit.observe(decision.id, float(rewards[t]))
        if ended or cut:
            seen, _ = environment.reset()
    return Played(arms, rewards)


def _require_gymnasium() -> Any:
    try:
        import gymnasium
    except ImportError:
        raise InputError("gymnasium is not installed; pip install 'neuralucb[gymnasium]' brings it.") from None
    return gymnasium
