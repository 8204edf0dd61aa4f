"""Arms by id, added and removed at any time: each with its features, or with a slot in the network."""

from operator import index
from typing import Any, NamedTuple

import numpy as np

from neuralucb.online.context_shape import ContextShape, array_shape, read_floats
from neuralucb.policy import Slot
from neuralucb.runtime.errors import InputError

__all__ = ["ArmId", "Arms", "arm_id"]

ArmId = str | int


class Arms(NamedTuple):
    """The current arms. A change makes a new record, so a thread that holds one never sees half a change.

    An arm's context is the shared context followed by the arm's features, or `Slot(shared, its slot)`.
    """

    shape: ContextShape
    capacity: int | None
    """how many slots the policy has (`shared_by`); None where arms have features instead"""
    features: dict[ArmId, np.ndarray]
    slots: dict[ArmId, int]
    """by arm, in the order in which they were added"""
    assigned: int
    """slots assigned so far; a slot is never assigned twice"""

    @property
    def ids(self) -> tuple[ArmId, ...]:
        """In the order in which they were added."""
        return tuple(self.slots)

    def check_new(self, arm: ArmId, features: Any) -> np.ndarray:
        """The features of an arm that can be added."""
        if arm in self.slots:
            raise InputError(f"arm {arm!r} already exists; remove it first, or choose another id.")
        if self.capacity is not None:
            if features is not None:
                raise InputError(f"features of arm {arm!r} must be None: in this policy every arm has a slot instead.")
            if self.assigned == self.capacity:
                raise InputError(
                    f"arm {arm!r} cannot be added: all {self.capacity} slots of the policy (shared_by) have been used, "
                    "and a removed arm's slot is not reused; build a policy with more, or one for arms with features."
                )
            return np.zeros(0, np.float32)
        if not self.shape.is_vector:
            raise InputError("arms by id need contexts that are one array, or a policy built with shared_by.")
        row = np.zeros(0, np.float32) if features is None else _read_features(arm, features)
        others = {len(other) for other in self.features.values()}
        if others and others != {len(row)}:
            raise InputError(
                f"features of arm {arm!r} must be {others.pop()} numbers, as for the other arms, got {len(row)}."
            )
        if len(row) > self._dim:
            raise InputError(f"features of arm {arm!r} must be at most {self._dim} numbers, got {len(row)}.")
        return row

    def with_arm(self, arm: ArmId, features: np.ndarray) -> "Arms":
        """With one more, which `check_new` has accepted."""
        return self._replace(
            features={**self.features, arm: features},
            slots={**self.slots, arm: self.assigned},
            assigned=self.assigned + 1,
        )

    def without_arm(self, arm: ArmId) -> "Arms":
        """Without one. Its slot is not reused: the network would take the new arm for the old one."""
        features, slots = dict(self.features), dict(self.slots)
        del features[arm], slots[arm]
        return self._replace(features=features, slots=slots)

    def check(self, arms: Any) -> tuple[ArmId, ...]:
        """The ids of these arms, all of which must exist; of every arm for None."""
        if isinstance(arms, str) or (arms is not None and not hasattr(arms, "__iter__")):
            raise InputError(f"arms must be a list of ids, got {arms!r}.")
        ids = self.ids if arms is None else tuple(arm_id(arm) for arm in arms)
        if not ids:
            raise InputError("arms must name at least one arm, got none; add_arm adds one.")
        for arm in ids:
            if arm not in self.slots:
                known = ", ".join(map(repr, list(self.slots)[:8])) or "none"
                raise InputError(f"arm {arm!r} was not found; known arms: {known}.")
        if len(set(ids)) < len(ids):
            raise InputError(f"arms must be distinct, got {ids!r}.")
        return ids

    def contexts(self, shared: Any, ids: tuple[ArmId, ...]) -> Any:
        """The contexts [..., K] of these arms, from a shared context [..., d] or None."""
        if self.capacity is not None:
            x = self._read_shared(shared, self._dim)
            spread = np.broadcast_to(x[..., None, :], (*x.shape[:-1], len(ids), x.shape[-1]))
            slots = np.asarray([self.slots[arm] for arm in ids], np.int32)
            return Slot._make((spread, np.broadcast_to(slots, spread.shape[:-1])))
        features = np.stack([self.features[arm] for arm in ids])
        x = self._read_shared(np.zeros(0) if shared is None else shared, self._dim - features.shape[1])
        spread = np.broadcast_to(x[..., None, :], (*x.shape[:-1], len(ids), x.shape[-1]))
        return np.concatenate([spread, np.broadcast_to(features, (*x.shape[:-1], *features.shape))], -1)

    def played_contexts(self, shared: Any, arms: tuple[ArmId, ...]) -> Any:
        """The context of the arm played in each row, from shared contexts [n, d] or None."""
        shape = None if shared is None else array_shape(shared)
        if shared is not None and (shape is None or len(shape) != 2 or shape[0] != len(arms)):
            raise InputError(f"contexts must be {len(arms)} rows of numbers, one per arm played, got {shared!r:.80}.")
        if self.capacity is not None:
            slots = np.asarray([self.slots[arm] for arm in arms], np.int32)
            return Slot._make((self._read_shared(shared, self._dim), slots))
        features = np.stack([self.features[arm] for arm in arms])
        x = self._read_shared(np.zeros((len(arms), 0)) if shared is None else shared, self._dim - features.shape[1])
        return np.concatenate([x, features], -1)

    def export(self) -> tuple[list[tuple[ArmId, int]], np.ndarray, int]:
        """Ids with their slots, their features, and how many slots have been assigned."""
        rows = list(self.features.values())
        return list(self.slots.items()), np.stack(rows) if rows else np.zeros((0, 0), np.float32), self.assigned

    def restored(self, slots: Any, features: np.ndarray, assigned: int) -> "Arms":
        """The arms that `export` described."""
        rows = {arm: np.array(row) for (arm, _), row in zip(slots, features, strict=True)}
        return self._replace(features=rows, slots=dict(slots), assigned=assigned)

    @property
    def _dim(self) -> int:
        return int(self.shape.leaves[0][0][0])

    def _read_shared(self, shared: Any, dim: int) -> np.ndarray:
        expected = f"the shared context must be {dim} numbers beside the arms' features"
        x = read_floats(shared, expected)
        if x.ndim == 0 or x.shape[-1] != dim:
            raise InputError(f"{expected}, got shape {x.shape}.")
        return x


def arm_id(arm: Any) -> ArmId:
    """An id in the form in which it is stored: a string or an integer."""
    if isinstance(arm, str):
        return str(arm)
    try:
        if isinstance(arm, bool | np.bool_):
            raise TypeError
        return index(arm)
    except TypeError:
        raise InputError(f"arm must be a string or a whole number, got {arm!r}.") from None


def _read_features(arm: ArmId, features: Any) -> np.ndarray:
    expected = f"features of arm {arm!r} must be one row of finite numbers"
    row = read_floats(features, expected).copy()  # the caller may change the array later
    if row.ndim != 1 or not np.isfinite(row).all():
        raise InputError(f"{expected}, got {features!r:.80}.")
    return row
