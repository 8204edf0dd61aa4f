"""State of others that lives in a bandit's folder: it changes with the bandit's events, in the same journal.

A service keeps the ids that callers chose for their decisions, deadlines and the like. A decision and its memo
are one record: after a crash there are both or neither, and no second journal can disagree with the first.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from neuralucb.runtime.errors import StorageError

__all__ = ["Annex", "Exported", "NoAnnex", "with_memo"]

Exported: TypeAlias = tuple[dict[str, Any], dict[str, np.ndarray]]
"""Plain values and arrays."""


class Annex(Protocol):
    """What an `OnlineBandit` carries along. All of it is called while the bandit is locked, but for the export."""

    def apply(self, kind: str, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Change by an event of the bandit's that has a memo, `note` among its fields: live, and again in a replay."""

    def freeze(self) -> Callable[[], Exported]:
        """A function that exports the state of this moment later, without the lock."""

    def restore(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Become what was exported. Raises KeyError or ValueError if it does not fit."""


class NoAnnex:
    """Of a bandit that carries nothing along: it refuses a folder in which somebody else keeps memos."""

    def apply(self, kind: str, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Refuse."""
        raise StorageError("the folder belongs to a decision service; open it with `neuralucb serve --store FOLDER`.")

    def freeze(self) -> Callable[[], Exported]:
        """Nothing to export."""
        return lambda: ({}, {})

    def restore(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Refuse anything but nothing."""
        if fields:
            self.apply("", fields, arrays)


def with_memo(fields: dict[str, Any], memo: Any) -> dict[str, Any]:
    """The fields of an event, with a memo if there is one; files call it `note`, as they always have."""
    return fields if memo is None else {**fields, "note": memo}
