"""Arms by id, which come and go: with features of their own, or with a place in the network."""

from typing import Any

import numpy as np

from neuralucb.online.contexts import Shape
from neuralucb.policy import Slot

__all__ = ["ArmId", "Arms"]

ArmId = str | int


class Arms:
    """The arms there are. An arm's context is the shared one beside its features, or `Slot(shared, its place)`."""

    def __init__(self, shape: Shape, places: int | None) -> None:
        self._shape = shape
        self._places = places
        self._features: dict[ArmId, np.ndarray] = {}
        self._place: dict[ArmId, int] = {}
        self._taken = 0

    def __len__(self) -> int:
        return len(self._place)

    @property
    def ids(self) -> tuple[ArmId, ...]:
        """In the order in which they came."""
        return tuple(self._place)

    def check_new(self, arm: ArmId, features: Any) -> np.ndarray:
        """Its features, if it can be added; changes nothing."""
        if isinstance(arm, bool) or not isinstance(arm, str | int):
            raise ValueError(f"arm must be a string or a whole number, got {arm!r}.")
        if arm in self._place:
            raise ValueError(f"arm {arm!r} is there already; remove it first, or take another id.")
        if self._places is not None:
            if features is not None:
                raise ValueError(f"features of arm {arm!r} must be None: this policy has a place for each arm instead.")
            if self._taken == self._places:
                raise ValueError(
                    f"arm {arm!r} finds no place: the policy was built for {self._places} arms (shared_by), and places "
                    "are not given twice; build one with more, or one for contexts with features."
                )
            return np.zeros(0, np.float32)
        if not self._shape.is_vector:
            raise ValueError("arms by id need contexts that are one array, or a policy built with shared_by.")
        row = np.zeros(0, np.float32) if features is None else np.asarray(features, np.float32)
        if row.ndim != 1 or not np.isfinite(row).all():
            raise ValueError(f"features of arm {arm!r} must be one row of finite numbers, got {features!r}.")
        others = {len(other) for other in self._features.values()}
        if others and others != {len(row)}:
            raise ValueError(f"features of arm {arm!r} must be {others.pop()} numbers as the others', got {len(row)}.")
        if len(row) > self._dim:
            raise ValueError(f"features of arm {arm!r} must be at most {self._dim} numbers, got {len(row)}.")
        return row

    def add(self, arm: ArmId, features: np.ndarray) -> None:
        """Add an arm that `check_new` has passed."""
        self._features[arm] = features
        self._place[arm] = self._taken
        self._taken += 1

    def remove(self, arm: ArmId) -> None:
        """Take an arm away; its place is not given to another, for whom the network would speak of the old one."""
        del self._features[arm], self._place[arm]

    def check(self, arms: Any) -> tuple[ArmId, ...]:
        """These arms, all of which must be there."""
        ids = self.ids if arms is None else tuple(arms)
        if not ids:
            raise ValueError("arms must name at least one arm, got none; add_arm adds one.")
        for arm in ids:
            if arm not in self._place:
                known = ", ".join(map(repr, list(self._place)[:8])) or "none"
                raise ValueError(f"arm {arm!r} is not there; there are: {known}.")
        if len(set(ids)) < len(ids):
            raise ValueError(f"arms must be distinct, got {ids!r}.")
        return ids

    def contexts(self, shared: Any, ids: tuple[ArmId, ...]) -> Any:
        """The contexts [..., K] of these arms for a shared context [..., d], or none."""
        if self._places is not None:
            x = self._read(shared, self._dim)
            places = np.asarray([self._place[arm] for arm in ids], np.int32)
            spread = np.broadcast_to(x[..., None, :], (*x.shape[:-1], len(ids), x.shape[-1]))
            return Slot._make((spread, np.broadcast_to(places, spread.shape[:-1])))
        features = np.stack([self._features[arm] for arm in ids])
        x = self._read(np.zeros(0) if shared is None else shared, self._dim - features.shape[1])
        spread = np.broadcast_to(x[..., None, :], (*x.shape[:-1], len(ids), x.shape[-1]))
        return np.concatenate([spread, np.broadcast_to(features, (*x.shape[:-1], *features.shape))], -1)

    def export(self) -> tuple[list[tuple[ArmId, int]], np.ndarray, int]:
        """Ids with their places, their features, and how many places are taken."""
        rows = list(self._features.values())
        return list(self._place.items()), np.stack(rows) if rows else np.zeros((0, 0), np.float32), self._taken

    def restore(self, places: Any, features: np.ndarray, taken: int) -> None:
        """What `export` gave."""
        self._place = dict(places)
        self._features = {arm: np.array(row) for (arm, _), row in zip(places, features, strict=True)}
        self._taken = taken

    @property
    def _dim(self) -> int:
        return int(self._shape.leaves[0][0][0])

    def _read(self, shared: Any, dim: int) -> np.ndarray:
        x = np.asarray(shared, np.float32)
        if x.ndim == 0 or x.shape[-1] != dim:
            raise ValueError(
                f"the shared context must be {dim} numbers beside the arms' features, got shape {x.shape}."
            )
        return x
