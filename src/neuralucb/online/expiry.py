"""Giving up on decisions whose reward does not come: a block at a time, so that other threads need not wait for all."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from neuralucb.online.inputs import is_number
from neuralucb.online.pending import BLOCK, let_others_run
from neuralucb.online.state import Event, State
from neuralucb.runtime.errors import InputError

__all__ = ["expire"]


def expire(
    state: State, lock: AbstractContextManager[Any], commit: Callable[[Event], None], *, older_than: float
) -> int:
    """Commit that decisions have expired which have been pending for so many seconds; returns how many.

    Decisions that are made meanwhile stay pending.
    """
    if not is_number(older_than) or not older_than >= 0:
        raise InputError(f"older_than must be seconds, at least 0, got {older_than!r}.")
    expired, now, below = 0, time.time(), None
    while True:
        with lock:
            below = state.ledger.next if below is None else below
            numbers = state.ledger.pending.older_than(older_than, now, below=below)
            if numbers:
                commit(Event("expire", {}, {"numbers": np.asarray(numbers, np.int64)}))
        expired += len(numbers)
        if len(numbers) < BLOCK:
            return expired
        let_others_run()
