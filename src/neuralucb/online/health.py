"""The health of a bandit: counters, memory, and whether its belief is numerically sound."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax

from neuralucb.designs import Full, drift
from neuralucb.online.keeper import Keeper
from neuralucb.online.state import State
from neuralucb.runtime.precision import exact
from neuralucb.runtime.records import brief

__all__ = ["Health", "examine"]


@brief
class Health(NamedTuple):
    """What a person on call wants to see. Printed, it is a table.

    Example:
        >>> bandit = OnlineBandit(build("lin-ucb", dim=2))
        >>> decision = bandit.select([[0.0, 1.0], [1.0, 0.0]])
        >>> health = bandit.health()
        >>> health.decisions, health.pending, health.failure
        (1, 1, None)
    """

    decisions: int
    pending: int
    observed: int
    expired: int
    explored: float
    """share of decisions that exploration changed; NaN before the first"""
    learned: int
    diverged: int
    """lessons that were not promoted: the last good belief stayed in use"""
    learning: str
    """when the last good lesson was, or how many have failed since"""
    refused: int
    """observations that would have made the belief infinite or NaN; they stay in the history"""
    clipped: int
    """rewards that were outside `reward_range` and moved to its bound"""
    loss: float
    """of the last lesson that was promoted"""
    smallest_variance: float
    """the smallest width² of any decision; at 0 the precision is exhausted"""
    inverse_drift: float
    """relative distance of the stored Z⁻¹ from the inverse of Z, in one direction; NaN for designs without Z⁻¹"""
    version: int
    belief_bytes: int
    history_bytes: int
    pending_bytes: int
    journal_bytes: int
    torn_bytes: int
    """cut off the end of the journal when it was opened: a record that a crash left incomplete"""
    replayed: int
    """events replayed from the journal when it was opened"""
    compiled: int
    """programs compiled so far"""
    failure: str | None
    """what is wrong, if anything: a journal that accepts no more writes, a newest snapshot that is damaged, a lesson or
    snapshot that failed, with no good one since, or refused observations"""

    def __str__(self) -> str:
        return "\n".join(f"{name:>18}  {_shown(value)}" for name, value in self._asdict().items())


def examine(
    state: State,
    keeper: Keeper | None,
    lock: AbstractContextManager[Any],
    problem: str | None,
    next_lesson: Callable[[], int | None],
) -> Health:
    """The health of a bandit. Its lock is held for the counters, not for the belief and the size of the journal.

    problem      why a lesson or a snapshot could not be made
    next_lesson  at which observation the next lesson is due
    """
    with lock:
        state.absorb_buffer()
        health, belief = _counted(state, keeper, problem, next_lesson()), state.belief
    designs = [leaf for leaf in jax.tree.leaves(belief, is_leaf=_is_full) if _is_full(leaf)]
    return health._replace(
        inverse_drift=max((float(exact(drift)(design)) for design in designs), default=float("nan")),
        belief_bytes=sum(leaf.nbytes for leaf in jax.tree.leaves(belief)),
        journal_bytes=0 if keeper is None else keeper.bytes,
    )


def _counted(state: State, keeper: Keeper | None, problem: str | None, due: int | None) -> Health:
    """What is known without computing."""
    counts, dead = state.counts, None if keeper is None else keeper.failure()
    decisions = counts["decisions"]
    return Health(
        decisions=decisions,
        pending=len(state.ledger.pending),
        observed=counts["observed"],
        expired=counts["expired"],
        explored=counts["explored"] / decisions if decisions else float("nan"),
        learned=counts["learned"],
        diverged=counts["diverged"],
        learning=state.lessons.words(state.observations.total, due),
        refused=counts["refused"],
        clipped=counts["clipped"],
        loss=state.loss,
        smallest_variance=state.smallest_variance,
        inverse_drift=float("nan"),
        version=state.version,
        belief_bytes=0,
        history_bytes=state.observations.bytes,
        pending_bytes=state.ledger.bytes,
        journal_bytes=0,
        torn_bytes=0 if keeper is None else keeper.torn_bytes,
        replayed=0 if keeper is None else keeper.replayed,
        compiled=state.programs.compilations,
        failure="; ".join(filter(None, (dead, problem, state.lessons.failure(counts["refused"])))) or None,
    )


def _shown(value: float | str | None) -> str:
    """A number to four digits; a dash for what there is not, such as a loss before the first lesson."""
    if value is None or value != value:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_full(leaf: object) -> bool:
    return isinstance(leaf, Full)
