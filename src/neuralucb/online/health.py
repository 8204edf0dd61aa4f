"""How a bandit is: counts, memory, and whether its belief is sound."""

from typing import TYPE_CHECKING, NamedTuple

import jax

from neuralucb.designs import Full, drift
from neuralucb.runtime.precision import exact

if TYPE_CHECKING:
    from neuralucb.online.bandit import OnlineBandit

__all__ = ["Health", "examine"]


class Health(NamedTuple):
    """What a person on call wants to see. Printed, it is a table."""

    decisions: int
    pending: int
    observed: int
    expired: int
    explored: float
    """share of decisions that exploration changed; NaN before the first"""
    learned: int
    diverged: int
    """lessons that were not promoted: the last good belief served on"""
    refused: int
    """observations that would have made the belief not finite; they are in the history all the same"""
    loss: float
    """of the last lesson that was promoted"""
    smallest_variance: float
    """the smallest width² of any decision; at 0 the numbers have run out"""
    inverse_drift: float
    """how far the kept Z⁻¹ is from the inverse of Z, relative, in one direction; NaN for a Z kept otherwise"""
    version: int
    belief_bytes: int
    history_bytes: int
    pending_bytes: int
    journal_bytes: int
    torn_bytes: int
    """cut off the journal's end at the start: what a crash left half written"""
    replayed: int
    """events replayed at the start"""
    compiled: int
    failure: str | None
    """why the last lesson or snapshot that was due came to nothing, if it did"""

    def __str__(self) -> str:
        return "\n".join(f"{name:>18}  {value}" for name, value in self._asdict().items())


def examine(bandit: "OnlineBandit") -> Health:
    """The health of a bandit, whose lock the caller holds."""
    state, keeper = bandit._state, bandit._keeper
    counts, pending = state.counts, state.ledger.pending
    decisions = counts["decisions"]
    designs = [leaf for leaf in jax.tree.leaves(state.belief, is_leaf=_is_full) if _is_full(leaf)]
    return Health(
        decisions=decisions,
        pending=len(pending),
        observed=counts["observed"],
        expired=counts["expired"],
        explored=counts["explored"] / decisions if decisions else float("nan"),
        learned=counts["learned"],
        diverged=counts["diverged"],
        refused=counts["refused"],
        loss=state.loss,
        smallest_variance=state.smallest_variance,
        inverse_drift=max((float(exact(drift)(design)) for design in designs), default=float("nan")),
        version=state.version,
        belief_bytes=sum(leaf.nbytes for leaf in jax.tree.leaves(state.belief)),
        history_bytes=state.observations.bytes,
        pending_bytes=state.ledger.bytes,
        journal_bytes=0 if keeper is None else keeper.bytes,
        torn_bytes=0 if keeper is None else keeper.torn,
        replayed=0 if keeper is None else keeper.replayed,
        compiled=bandit._programs.compilations,
        failure=bandit.failure,
    )


def _is_full(leaf: object) -> bool:
    return isinstance(leaf, Full)
