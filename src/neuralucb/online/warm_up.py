"""Compiling ahead: what decisions need, here, and what lessons need, where lessons are made."""

from neuralucb.online.compiled import history_capacities
from neuralucb.online.lesson_process import LessonProcess
from neuralucb.online.state import State
from neuralucb.settings import check_integer

__all__ = ["warm_up"]


def warm_up(
    state: State,
    process: LessonProcess | None,
    decisions: int,
    arms: int | None,
    observations: int | None,
    *,
    sequential: bool,
) -> None:
    """Compile what so many decisions at once over so many arms need, and every lesson up to so many observations.

    For arms, None stands for those that were added. A window bounds the observations; None stands for the window, or
    for as many as there are. Each doubling is one program, compiled by the process that makes lessons if there is one.
    """
    count = check_integer("arms", arms or state.arms.capacity or max(1, len(state.arms.slots)), 1)
    decisions = check_integer("decisions", decisions, 1)
    observations = None if observations is None else check_integer("observations", observations, 1)
    state.programs.warm_up(state.belief, state.shape.zeros(decisions, count), sequential=sequential)
    past = state.observations
    contexts, rewards = past.in_window()
    bounds = [each for each in (observations, past.window) if each is not None]
    capacities = history_capacities(len(rewards), min(bounds, default=0))
    if process is not None:
        process.prepare(state, capacities)
        return
    for capacity in capacities:
        history = past.history(contexts, state.normalized(rewards), capacity=capacity)
        state.programs.compile_lesson(state.belief, history, reviewed=past.window is not None)
