"""Another policy takes over: it has learned from the same observations, and goes on where it is."""

from collections.abc import Callable
from typing import Any

from neuralucb.online.annex import with_memo
from neuralucb.online.state import Event, State
from neuralucb.runtime.errors import InputError

__all__ = ["adoption_event"]


def adoption_event(
    state: State, successor: State, prepare: Callable[[], object] | None, *, barrier: int, memo: Any
) -> Event:
    """The event with which a state continues as its successor, brought up to date; nothing may change meanwhile.

    prepare  called when it is up to date
    barrier  the last snapshot that cannot be returned to from then on
    Raises InputError for policies that were not made by `build`.
    """
    if successor.programs.policy.origin is None or state.programs.policy.origin is None:
        raise InputError("successor must have a policy made by build, as must this bandit.")
    successor.follow(state)
    successor.absorb_buffer()
    if prepare is not None:
        prepare()
    fields, arrays = successor.successor()
    return Event("adopt", with_memo({**fields, "barrier": barrier}, memo), arrays)
