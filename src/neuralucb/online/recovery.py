"""From a folder to a bandit and back: a snapshot, then the journal's events since."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralucb import __version__
from neuralucb.algorithms import build
from neuralucb.online import snapshots
from neuralucb.online.journal import Journal, Sync, read_segment, segments
from neuralucb.online.snapshots import Snapshot
from neuralucb.online.state import Event
from neuralucb.online.storage import StorageError, pack, unpack
from neuralucb.policy import Origin, Policy

if TYPE_CHECKING:
    from neuralucb.online.bandit import OnlineBandit

__all__ = ["Keeper", "load", "save", "step"]

REPLAYED = 4096
"""Observations absorbed at once while a journal is replayed."""


def step(name: str) -> None:
    """Called before each step of writing, with its name; tests of crashes put their own in its place."""


class Keeper:
    """A bandit's folder: its journal, and snapshots from which that goes on."""

    def __init__(self, bandit: "OnlineBandit", folder: Path, sync: Sync) -> None:
        self._bandit, self.folder = bandit, folder
        self.torn = 0
        """bytes that were cut off a torn end"""
        self.replayed = 0
        self._journal = Journal(folder, sync, lambda name: step(name))
        try:
            number = self._recover() if snapshots.numbers(folder) else self._begin()
            self._journal.begin(max(segments(folder), default=0) + 1, number)
        except BaseException:
            self._journal.close()
            raise
        self._snapshot_at = bandit._state.observations.total

    def append(self, event: Event) -> None:
        """Write an event before it happens."""
        self._journal.append(pack({"kind": event.kind, **event.fields}, event.arrays))

    def is_due(self) -> bool:
        """Whether enough was observed for another snapshot."""
        since = self._bandit._state.observations.total - self._snapshot_at
        return bool(since >= self._bandit.settings["snapshot_every"])

    def snapshot(self) -> int:
        """Write one; the journal goes on in a new segment, and segments that no snapshot needs are deleted."""
        bandit = self._bandit
        with bandit._lock:
            self._journal.begin(max(segments(self.folder), default=0) + 1, self._journal.number)
            shot = _of(bandit, self._journal.segment, self._journal.number)
            self._snapshot_at = bandit._state.observations.total
        number = snapshots.write(self.folder, shot, step=lambda name: step(name))
        oldest = snapshots.note(self.folder, snapshots.numbers(self.folder)[0])
        for segment, path in segments(self.folder).items():
            if segment < oldest:
                path.unlink(missing_ok=True)
        return number

    def rollback(self, steps: int) -> int:
        """The belief and observations of an older snapshot; decisions that wait now go on waiting."""
        there = snapshots.numbers(self.folder)
        if steps > len(there):
            raise ValueError(f"steps must be at most {len(there)}, the snapshots there are, got {steps}.")
        number, shot = snapshots.read(self.folder, there[-steps])
        self._bandit._state.go_back_to(shot.fields["state"], shot.arrays)
        self.snapshot()
        return number

    def close(self) -> None:
        """Let another have the folder."""
        self._journal.close()

    @property
    def bytes(self) -> int:
        """Of the journal on the disk."""
        return sum(path.stat().st_size for path in segments(self.folder).values())

    def _begin(self) -> int:
        """A folder that is new: a snapshot of nothing, to which the journal will be added."""
        if segments(self.folder):
            raise StorageError(f"{self.folder} has a journal but no snapshot to begin with; take back what is missing.")
        snapshots.write(self.folder, _of(self._bandit, 1, 0), step=lambda name: step(name))
        return 0

    def _recover(self) -> int:
        """The newest snapshot, and what the journal says happened since; returns the number of the next record."""
        _, shot = snapshots.read(self.folder)
        bandit = self._bandit
        _check_same(bandit, shot, self.folder)
        bandit.name = shot.fields["name"]
        _restore(bandit, shot, self.folder)
        number, state = int(shot.fields["record"]), bandit._state
        waiting = {k: path for k, path in segments(self.folder).items() if k >= shot.fields["segment"]}
        for segment, path in waiting.items():
            for payload in read_segment(path, number, last=segment == max(waiting), torn=self._cut):
                fields, arrays = unpack(payload)
                state.apply(Event(fields.pop("kind"), fields, arrays))
                state.settle(if_more_than=REPLAYED)
                number += 1
                self.replayed += 1
        state.settle()
        state.base = None
        return number

    def _cut(self, size: int) -> None:
        self.torn += size


def save(bandit: "OnlineBandit", folder: Path) -> Path:
    """All of a bandit in a folder of its own."""
    if segments(folder):
        raise ValueError(f"path must not be a journal's folder, got {folder}; snapshot() writes there.")
    with bandit._lock:
        shot = _of(bandit, 0, 0)
    snapshots.write(folder, shot, kept=1, step=lambda name: step(name))
    return folder


def load(kind: type["OnlineBandit"], folder: Path, policy: Policy | None, example: Any) -> "OnlineBandit":
    """The bandit that a folder holds."""
    _, shot = snapshots.read(folder)
    try:
        settings, origin, leaves = (shot.fields[name] for name in ("settings", "origin", "leaves"))
        if policy is None:
            if origin is None:
                raise ValueError("policy must be given: the one that was saved was not made by build.")
            task = {name: origin[name] for name in ("dim", "rounds", "shared_by")}
            policy = build(origin["algorithm"], **task, **origin["settings"])
        if example is None and policy.origin is None and len(leaves) == 1:
            example = np.zeros(*leaves[0])
        journal = folder if segments(folder) else None
        bandit = kind(policy, **settings, journal=journal, example=example)
    except (KeyError, TypeError) as problem:
        raise StorageError(f"{folder} has a snapshot that this version cannot read: {problem!r}.") from problem
    if journal is None:
        _check_same(bandit, shot, folder)
        _restore(bandit, shot, folder)
        bandit.name, bandit._given = shot.fields["name"], shot.fields["given"]
    return bandit


def _of(bandit: "OnlineBandit", segment: int, record: int) -> Snapshot:
    """A bandit at this moment. The caller holds its lock."""
    fields, arrays = bandit._state.export()
    about = {
        "name": bandit.name,
        "settings": bandit.settings,
        "origin": _plain(bandit.policy.origin),
        "leaves": bandit._state.shape.leaves,
        "given": bandit._given,
        "segment": segment,
        "record": record,
        "version": __version__,
    }
    return Snapshot({**about, "state": fields}, arrays, note=segment)


def _restore(bandit: "OnlineBandit", shot: Snapshot, folder: Path) -> None:
    try:
        bandit._state.restore(shot.fields["state"], shot.arrays)
    except (KeyError, ValueError, TypeError) as problem:
        raise StorageError(f"{folder} does not hold the state of this bandit's policy: {problem}.") from problem


def _check_same(bandit: "OnlineBandit", shot: Snapshot, folder: Path) -> None:
    """A folder goes on with the bandit that it was made by, not with another."""
    mine, theirs = _identity(bandit), {**shot.fields["settings"], "policy": shot.fields["origin"]}
    leaves = [[list(shape), kind] for shape, kind in bandit._state.shape.leaves]
    for name, value in {**mine, "contexts": leaves}.items():
        stored = shot.fields["leaves"] if name == "contexts" else theirs[name]
        if stored != value:
            raise ValueError(
                f"{folder} was made with {name} {stored!r}, this bandit has {value!r}; take another folder."
            )


def _identity(bandit: "OnlineBandit") -> dict[str, Any]:
    same = {name: bandit.settings[name] for name in ("seed", "window", "normalize")}
    return {**same, "policy": _plain(bandit.policy.origin)}


def _plain(origin: Origin | None) -> dict[str, Any] | None:
    """An origin as JSON has it."""
    return None if origin is None else {**origin._asdict(), "settings": dict(origin.settings)}
