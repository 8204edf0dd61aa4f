"""From a folder to a bandit and back: a snapshot, then the journal's events since."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralucb import __version__
from neuralucb.algorithms import build
from neuralucb.online import snapshots
from neuralucb.online.codec import pack, unpack
from neuralucb.online.journal import Journal, Sync, holds_records, read_segment, segments
from neuralucb.online.snapshots import Snapshot
from neuralucb.online.state import Event
from neuralucb.policy import Origin, Policy
from neuralucb.runtime.errors import InputError, StorageError

if TYPE_CHECKING:
    from neuralucb.online.bandit import OnlineBandit

__all__ = ["Keeper", "load", "save", "step"]

MISFIT = (KeyError, TypeError, IndexError, AttributeError, OverflowError)
"""What comes of fields that are not there, or of another kind, though the SHA-256 is right."""


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
        self._snapshot_at = 0
        """the number of the first record after the last snapshot"""
        self._believed: int | None = None
        """the snapshot that a rollback went to, while there is none since"""
        self._journal = Journal(folder, sync, lambda name: step(name))
        try:
            snapshots.sweep_up(folder)
            number, settings = self._recover() if snapshots.numbers(folder) else self._begin()
            self._journal.begin(max(segments(folder), default=0) + 1, number)
            if settings != bandit.settings:
                self.snapshot()  # what `load` goes on with
        except MISFIT as problem:
            self._journal.close()
            raise _unreadable(folder, problem) from problem
        except BaseException:
            self._journal.close()
            raise

    def append(self, event: Event) -> None:
        """Write an event before it happens."""
        self._journal.append(pack({"kind": event.kind, **event.fields}, event.arrays))

    def fail(self, problem: BaseException) -> None:
        """What was written did not happen: take nothing any more, or the two would part."""
        self._journal.fail(f"{type(problem).__name__} between writing and doing")

    def is_due(self) -> bool:
        """Whether enough was written for another snapshot."""
        return bool(self._journal.number - self._snapshot_at >= self._bandit.settings["snapshot_every"])

    def snapshot(self) -> int:
        """Write one; the journal goes on in a new segment, and segments that no snapshot needs are deleted."""
        bandit = self._bandit
        with bandit._lock:
            self._journal.begin(max(segments(self.folder), default=0) + 1, self._journal.number)
            shot = _of(bandit, self._journal.segment, self._journal.number)
            self._snapshot_at, self._believed = self._journal.number, None
        number = snapshots.write(self.folder, shot, step=lambda name: step(name))
        oldest = snapshots.note(self.folder, snapshots.numbers(self.folder)[0])
        for segment, path in segments(self.folder).items():
            if segment < oldest:
                path.unlink(missing_ok=True)
        return number

    def rollback(self, steps: int) -> int:
        """The belief and observations of an older snapshot; decisions that wait now go on waiting."""
        there = [number for number in snapshots.numbers(self.folder) if number < (self._believed or math.inf)]
        if steps > len(there):
            raise InputError(f"steps must be at most {len(there)}, the snapshots there are, got {steps}.")
        number, shot = snapshots.read(self.folder, there[-steps])
        self.append(Event("rollback", {"snapshot": number}, {}))
        try:
            self._bandit._state.apply(Event("rollback", shot.fields["state"], shot.arrays))
        except BaseException as problem:
            self.fail(problem)
            raise
        self._believed = number
        return number

    def close(self) -> None:
        """Let another have the folder."""
        self._journal.close()

    @property
    def bytes(self) -> int:
        """Of the journal on the disk."""
        return sum(path.stat().st_size for path in segments(self.folder).values() if path.exists())

    def _begin(self) -> tuple[int, dict[str, Any]]:
        """A snapshot of what there is, to which the journal will be added: of nothing, or of what `save` wrote."""
        if segments(self.folder):
            raise StorageError(f"{self.folder} has a journal but no snapshot to begin with; take back what is missing.")
        snapshots.write(self.folder, _of(self._bandit, 1, 0), step=lambda name: step(name))
        return 0, self._bandit.settings

    def _recover(self) -> tuple[int, dict[str, Any]]:
        """The newest snapshot, and what the journal says happened since.

        Returns the number of the next record, and the settings that the folder goes on with.
        """
        _, shot = snapshots.read(self.folder)
        bandit = self._bandit
        _check_same(bandit, shot, self.folder)
        bandit.name = shot.fields["name"]
        _restore(bandit, shot, self.folder)
        number = self._snapshot_at = int(shot.fields["record"])
        first = int(shot.fields["segment"])
        if first == 0:
            return self._begin()  # what `save` wrote has no journal yet
        left = {segment: path for segment, path in segments(self.folder).items() if segment >= first}
        if first not in left and (left or number):
            raise StorageError(f"{self.folder} lacks segment {first} of its journal; take back what is missing.")
        while len(left) > 1 and not holds_records(list(left.values())[-1]):
            _, unused = left.popitem()  # begun, and never used: the one before may still end torn
            list(read_segment(unused, None, last=True, torn=self._cut))  # deletes one that was not even begun
        for segment, path in left.items():
            for payload in read_segment(path, number, last=segment == max(left), torn=self._cut):
                self._replay(*unpack(payload))
                number += 1
        bandit._state.settle()
        bandit._state.abandon()
        return number, shot.fields["settings"]

    def _replay(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        state, kind = self._bandit._state, fields.pop("kind")
        if not state.knows(kind):
            raise StorageError(
                f"{self.folder} has an event {kind!r}, which this version does not know; update neuralucb."
            )
        if kind == "rollback":
            self._believed, shot = snapshots.read(self.folder, fields["snapshot"])
            fields, arrays = shot.fields["state"], shot.arrays
        state.apply(Event(kind, fields, arrays))
        state.settle(if_more_than=REPLAYED)
        self.replayed += 1

    def _cut(self, size: int) -> None:
        self.torn += size


def save(bandit: "OnlineBandit", folder: Path) -> Path:
    """All of a bandit in a folder of its own."""
    if segments(folder) or (folder / "lock").exists():
        raise InputError(f"path must not be a journal's folder, got {folder}; snapshot() writes there.")
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
                raise InputError("policy must be given: the one that was saved was not made by build.")
            task = {name: origin[name] for name in ("dim", "rounds", "shared_by")}
            policy = build(origin["algorithm"], **task, **origin["settings"])
        if example is None and policy.origin is None and len(leaves) == 1:
            example = np.zeros(*leaves[0])
        journal = folder if shot.fields["segment"] else None
        bandit = kind(policy, **settings, journal=journal, example=example)
        if journal is None:
            _check_same(bandit, shot, folder)
            _restore(bandit, shot, folder)
            bandit.name, bandit._given = shot.fields["name"], int(shot.fields["given"])
        return bandit
    except MISFIT as problem:
        raise _unreadable(folder, problem) from problem


def _of(bandit: "OnlineBandit", segment: int, record: int) -> Snapshot:
    """A bandit at this moment. The caller holds its lock."""
    fields, arrays = bandit._state.export()
    about = {
        "name": bandit.name,
        "settings": bandit.settings,
        "origin": _plain(bandit.policy.origin),
        "leaves": bandit._state.shape.leaves,
        "structure": str(bandit._state.shape.structure),
        "given": bandit._given,
        "segment": segment,
        "record": record,
        "version": __version__,
    }
    return Snapshot({**about, "state": fields}, arrays, note=segment)


def _restore(bandit: "OnlineBandit", shot: Snapshot, folder: Path) -> None:
    try:
        bandit._state.restore(shot.fields["state"], shot.arrays)
    except (ValueError, *MISFIT) as problem:
        raise StorageError(f"{folder} does not hold the state of this bandit's policy: {problem}.") from problem


def _check_same(bandit: "OnlineBandit", shot: Snapshot, folder: Path) -> None:
    """A folder goes on with the bandit that it was made by, not with another."""
    mine, theirs = _identity(bandit), {**shot.fields["settings"], "policy": shot.fields["origin"]}
    shape = bandit._state.shape
    mine["contexts"] = [str(shape.structure), [[list(size), kind] for size, kind in shape.leaves]]
    theirs["contexts"] = [shot.fields["structure"], shot.fields["leaves"]]
    for name, value in mine.items():
        stored = theirs[name]
        if stored != value:
            raise InputError(
                f"{folder} was made with {name} {stored!r}, this bandit has {value!r}; take another folder."
            )


def _unreadable(folder: Path, problem: Exception) -> StorageError:
    return StorageError(f"{folder} holds what this version cannot read: {problem!r}; take back the files.")


def _identity(bandit: "OnlineBandit") -> dict[str, Any]:
    same = {name: bandit.settings[name] for name in ("seed", "window", "normalize")}
    return {**same, "policy": _plain(bandit.policy.origin)}


def _plain(origin: Origin | None) -> dict[str, Any] | None:
    """An origin as JSON has it."""
    return None if origin is None else {**origin._asdict(), "settings": dict(origin.settings)}
