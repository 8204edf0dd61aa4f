"""Arms by id, which come and go: with features of their own, or with a place in the network."""

from operator import index
from typing import Any, NamedTuple

import numpy as np

from neuralucb.online.contexts import Shape
from neuralucb.policy import Slot
from neuralucb.runtime.errors import InputError

__all__ = ["ArmId", "Arms", "arm_id"]

ArmId = str | int


class Arms(NamedTuple):
    """The arms there are; replaced as a whole, so that whoever holds one sees no half of a change.

    An arm's context is the shared one beside its features, or `Slot(shared, its place)`.
    """

    shape: Shape
    places: int | None
    """how many the policy has, if it has places"""
    features: dict[ArmId, np.ndarray]
    place: dict[ArmId, int]
    taken: int
    """places given so far; they are not given twice"""

    @property
    def ids(self) -> tuple[ArmId, ...]:
        """In the order in which they came."""
        return tuple(self.place)

    def check_new(self, arm: ArmId, features: Any) -> np.ndarray:
        """Its features, if it can be added."""
        if arm in self.place:
            raise InputError(f"arm {arm!r} is there already; remove it first, or take another id.")
        if self.places is not None:
            if features is not None:
                raise InputError(f"features of arm {arm!r} must be None: this policy has a place for each arm instead.")
            if self.taken == self.places:
                raise InputError(
                    f"arm {arm!r} finds no place: the policy was built for {self.places} arms (shared_by), and places "
                    "are not given twice; build one with more, or one for contexts with features."
                )
            return np.zeros(0, np.float32)
        if not self.shape.is_vector:
            raise InputError("arms by id need contexts that are one array, or a policy built with shared_by.")
        row = np.zeros(0, np.float32) if features is None else _row(features, f"features of arm {arm!r}")
        others = {len(other) for other in self.features.values()}
        if others and others != {len(row)}:
            raise InputError(f"features of arm {arm!r} must be {others.pop()} numbers as the others', got {len(row)}.")
        if len(row) > self._dim:
            raise InputError(f"features of arm {arm!r} must be at most {self._dim} numbers, got {len(row)}.")
        return row

    def with_arm(self, arm: ArmId, features: np.ndarray) -> "Arms":
        """And one that `check_new` has passed."""
        return self._replace(
            features={**self.features, arm: features}, place={**self.place, arm: self.taken}, taken=self.taken + 1
        )

    def without(self, arm: ArmId) -> "Arms":
        """Without one; its place is not given to another, for whom the network would speak of the old one."""
        features, place = dict(self.features), dict(self.place)
        del features[arm], place[arm]
        return self._replace(features=features, place=place)

    def check(self, arms: Any) -> tuple[ArmId, ...]:
        """These arms, all of which must be there; all there are for None."""
        if isinstance(arms, str):
            raise InputError(f"arms must be a list of ids, got {arms!r}.")
        ids = self.ids if arms is None else tuple(arm_id(arm) for arm in arms)
        if not ids:
            raise InputError("arms must name at least one arm, got none; add_arm adds one.")
        for arm in ids:
            if arm not in self.place:
                known = ", ".join(map(repr, list(self.place)[:8])) or "none"
                raise InputError(f"arm {arm!r} is not there; there are: {known}.")
        if len(set(ids)) < len(ids):
            raise InputError(f"arms must be distinct, got {ids!r}.")
        return ids

    def contexts(self, shared: Any, ids: tuple[ArmId, ...]) -> Any:
        """The contexts [..., K] of these arms for a shared context [..., d], or none."""
        if self.places is not None:
            x = self._read(shared, self._dim)
            spread = np.broadcast_to(x[..., None, :], (*x.shape[:-1], len(ids), x.shape[-1]))
            places = np.asarray([self.place[arm] for arm in ids], np.int32)
            return Slot._make((spread, np.broadcast_to(places, spread.shape[:-1])))
        features = np.stack([self.features[arm] for arm in ids])
        x = self._read(np.zeros(0) if shared is None else shared, self._dim - features.shape[1])
        spread = np.broadcast_to(x[..., None, :], (*x.shape[:-1], len(ids), x.shape[-1]))
        return np.concatenate([spread, np.broadcast_to(features, (*x.shape[:-1], *features.shape))], -1)

    def played(self, shared: Any, arms: tuple[ArmId, ...]) -> Any:
        """One context a row, of the arm played in it, from shared contexts [n, d]."""
        if shared is not None and (np.ndim(shared) != 2 or len(shared) != len(arms)):
            raise InputError(f"contexts must be {len(arms)} rows, one for each arm played, got {np.shape(shared)}.")
        if self.places is not None:
            places = np.asarray([self.place[arm] for arm in arms], np.int32)
            return Slot._make((self._read(shared, self._dim), places))
        features = np.stack([self.features[arm] for arm in arms])
        x = self._read(np.zeros((len(arms), 0)) if shared is None else shared, self._dim - features.shape[1])
        return np.concatenate([x, features], -1)

    def export(self) -> tuple[list[tuple[ArmId, int]], np.ndarray, int]:
        """Ids with their places, their features, and how many places are taken."""
        rows = list(self.features.values())
        return list(self.place.items()), np.stack(rows) if rows else np.zeros((0, 0), np.float32), self.taken

    def restored(self, places: Any, features: np.ndarray, taken: int) -> "Arms":
        """From what `export` gave."""
        rows = {arm: np.array(row) for (arm, _), row in zip(places, features, strict=True)}
        return self._replace(features=rows, place=dict(places), taken=taken)

    @property
    def _dim(self) -> int:
        return int(self.shape.leaves[0][0][0])

    def _read(self, shared: Any, dim: int) -> np.ndarray:
        what = f"the shared context must be {dim} numbers beside the arms' features"
        try:
            with np.errstate(over="ignore"):
                x = np.asarray(shared, np.float32)
        except (TypeError, ValueError):
            raise InputError(f"{what}, got {shared!r:.80}.") from None
        if x.ndim == 0 or x.shape[-1] != dim:
            raise InputError(f"{what}, got shape {x.shape}.")
        return x


def arm_id(arm: Any) -> ArmId:
    """An id as it is kept: a string or a whole number."""
    if isinstance(arm, str):
        return str(arm)
    try:
        if isinstance(arm, bool | np.bool_):
            raise TypeError
        return index(arm)
    except TypeError:
        raise InputError(f"arm must be a string or a whole number, got {arm!r}.") from None


def _row(values: Any, what: str) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):
            row = np.array(values, np.float32)  # the caller may use the array again
    except (TypeError, ValueError):
        raise InputError(f"{what} must be one row of finite numbers, got {values!r:.80}.") from None
    if row.ndim != 1 or not np.isfinite(row).all():
        raise InputError(f"{what} must be one row of finite numbers, got {values!r:.80}.")
    return row
