"""From a request to choices: which program chooses, what is refused, and the event that records the rest."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import numpy as np

from neuralucb.online.annex import with_memo
from neuralucb.online.arms import ArmId
from neuralucb.online.compiled import Choices, power_of_two
from neuralucb.online.inputs import Request
from neuralucb.online.ledger import DecisionBatch, column
from neuralucb.online.state import Basis, Event, State
from neuralucb.runtime.errors import InputError

__all__ = ["begin", "decide", "decision_event"]

SHOWN = ("mean", "width", "score")
"""What a decision says of every arm, and must be able to say in numbers."""


def decide(
    state: State,
    lock: AbstractContextManager[Any],
    commit: Callable[[Event], None],
    request: Request,
    *,
    sequential: bool,
) -> DecisionBatch:
    """Choose, then write the choices to the journal and the ledger; only then are they decisions."""
    with lock if sequential else nullcontext():  # sequential: no other may be made in between
        return begin(state, lock, commit, request, None, sequential=sequential)()


def begin(
    state: State,
    lock: AbstractContextManager[Any],
    commit: Callable[[Event], None],
    request: Request,
    memo: Any,
    *,
    sequential: bool,
) -> Callable[[], DecisionBatch]:
    """Begin to choose, in threads of JAX; what it returns waits for the choices, and records them as decisions."""
    with lock:
        basis = state.basis(request.decisions)
    made = _begin_choosing(state, basis, request, sequential=sequential)

    def end() -> DecisionBatch:
        try:
            choices = made()
            _check_finite(choices.rows, request)
        except InputError:
            with lock:
                state.ledger.release(basis.first, request.decisions)
            raise
        event = decision_event(state, basis, request.ids, choices, memo)
        with lock:
            commit(event)
            return state.ledger.pending[basis.first]

    return end


def decision_event(
    state: State, basis: Basis, ids: tuple[ArmId, ...] | None, choices: Choices, memo: Any = None
) -> Event:
    """The event that records choices, in the caller's scale of rewards, with a memo for the annex."""
    if state.normalize:
        basis.moments.denormalize(choices.rows)
    fields = {"first": basis.first, "version": basis.version, "time": time.time(), "arms": ids}
    arrays = {"rows": choices.rows, **state.context_arrays(choices.contexts)}
    for array in arrays.values():
        array.flags.writeable = False  # decisions show views of the ledger's arrays
    return Event("decide", with_memo(fields, memo), arrays)


def _begin_choosing(state: State, basis: Basis, request: Request, *, sequential: bool) -> Callable[[], Choices]:
    """The choices for a request, later; sequential ones take pending decisions, and each other, into account."""
    programs, one = basis.programs, request.available.ndim == 1
    if sequential:
        capacity = power_of_two(len(request.available)) if one else request.capacity
        batch = request.as_batch() if one else request
        return lambda: programs.choose_sequentially(
            basis.first, state.belief_with_pending(), batch.contexts, batch.available, capacity=capacity
        )
    if one:
        return lambda: programs.choose(basis.first, basis.belief, request.contexts, request.available)
    return programs.begin_many(
        basis.first, basis.belief, request.contexts, request.available, capacity=request.capacity
    )


def _check_finite(rows: np.ndarray, request: Request) -> None:
    """Refuse a request of which the policy believes nothing: a NaN would choose at random, and is no JSON."""
    arms = request.available.shape[-1]
    if np.isfinite(rows[:, : len(SHOWN) * arms]).all():
        return
    available = request.available.reshape(-1, arms)
    for name in SHOWN:
        bad = available & ~np.isfinite(column(rows, name))
        if not bad.any():
            continue
        row, arm = np.argwhere(bad)[0].tolist()
        where = f"arm {arm if request.ids is None else repr(request.ids[arm])}"
        where += "" if request.available.ndim == 1 else f" in request {row}"
        raise InputError(
            f"contexts must be small enough to be scored, got values up to {_largest(request, row):.3g}: the {name} of "
            f"{where} would be {column(rows, name)[row, arm]}; check their units, scale them, or drop such requests."
        )


def _largest(request: Request, row: int) -> float:
    """The largest size of any number among the contexts of one row."""
    leaves: list[Any] = jax.tree.leaves(request.contexts)
    rows = leaves if request.available.ndim == 1 else [leaf[row] for leaf in leaves]
    return max(float(np.abs(leaf).max()) for leaf in rows if leaf.dtype.kind == "f")
