"""A bandit's folder: events are written to a journal first; a restart reads a snapshot and replays the journal."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb import __version__
from neuralucb.algorithms import rebuild
from neuralucb.online import snapshots
from neuralucb.online.codec import pack, unpack
from neuralucb.online.decision_ids import DecisionIds
from neuralucb.online.disk import storage_errors
from neuralucb.online.journal import Journal, Sync, holds_records, read_segment, segments
from neuralucb.online.lesson_record import refusal_words, warn
from neuralucb.online.snapshots import Retention, Snapshot
from neuralucb.online.state import Event, State
from neuralucb.policy import Origin, Policy
from neuralucb.runtime.errors import InputError, StorageError

__all__ = ["Identity", "Keeper", "Saved", "absorb", "commit", "readable", "restore_saved", "save", "step"]

MALFORMED = (KeyError, TypeError, IndexError, AttributeError, OverflowError)
"""Raised by fields that are missing or of the wrong type, although their SHA-256 is right."""

REPLAY_ROWS = 4096
"""Observations absorbed at once while a journal is replayed."""

VERSIONS: dict[str, str] = {"version": __version__, "jax": jax.__version__}
"""With which a folder is written: other ones may round otherwise."""

FIXED_SETTINGS = ("seed", "window", "normalize")
"""Settings with which a folder must be opened again as it was made."""


class Identity(NamedTuple):
    """Which bandit a folder belongs to."""

    ids: DecisionIds
    settings: dict[str, Any]
    policy: Policy


class Saved(NamedTuple):
    """What a folder says of its bandit: enough to make it again."""

    snapshot: Snapshot
    policy: Policy
    settings: dict[str, Any]
    journal: Path | None
    example: Any

    @classmethod
    def read(cls, folder: Path, policy: Policy | None, example: Any) -> "Saved":
        """From a folder; a policy that `build` did not make must be given."""
        snapshot, _ = snapshots.read_newest_intact(folder)
        settings, origin, leaves = (snapshot.fields[name] for name in ("settings", "origin", "leaves"))
        if policy is None:
            if origin is None:
                raise InputError("policy must be given: the one that was saved was not made by build.")
            policy = rebuild(Origin(**{**origin, "settings": tuple(origin["settings"].items())}))
        if example is None and policy.origin is None and len(leaves) == 1:
            example = np.zeros(*leaves[0])
        return cls(snapshot, policy, settings, folder if snapshot.fields["segment"] else None, example)


class Keeper:
    """A journal of every event, and snapshots from which a restart replays it."""

    def __init__(self, folder: Path, sync: Sync, state: State, identity: Identity) -> None:
        self.folder = folder
        self.identity: Identity = identity
        """with the ids of the bandit that the folder belongs to"""
        self.torn_bytes: int = 0
        """cut off the end of the journal"""
        self.replayed: int = 0
        self.retention: Retention = Retention()
        """of snapshots"""
        self._state = state
        self._snapshot_at = 0
        """the number of the first record after the last snapshot"""
        self._rolled_back_to: int | None = None
        """the snapshot that a rollback went to, until there is a newer one"""
        self._damage: str | None = None
        """what is wrong with the newest snapshot, if it is damaged"""
        self._journal = Journal(folder, sync, lambda name: step(name))
        try:
            with readable(folder):
                snapshots.remove_partial_files(folder)
                number, is_current = self._recover() if snapshots.numbers(folder) else self._begin()
                self._journal.begin(max(segments(folder), default=0) + 1, number)
                if not self.identity.ids.secret:
                    self._journal.append(pack({"kind": "ids", **self._give_secret().export()}, {}))
                if not is_current:
                    self.snapshot(nullcontext())  # `load` uses the settings of the last snapshot
        except BaseException:
            self._journal.close()
            raise

    def append(self, event: Event) -> None:
        """Write an event, before it is applied."""
        self._journal.append(pack({"kind": event.kind, **event.fields}, event.arrays))

    def fail(self, problem: BaseException) -> None:
        """Accept no more writes: an event was written but not applied, so journal and state differ."""
        self._journal.fail(f"{type(problem).__name__} between writing an event and applying it")

    def is_due(self) -> bool:
        """Whether enough has been written for another snapshot."""
        return bool(self._journal.number - self._snapshot_at >= self.identity.settings["snapshot_every"])

    def snapshot(self, lock: AbstractContextManager[Any]) -> int:
        """Write a snapshot, start a new segment, and delete the segments that no snapshot needs.

        The lock is held while the state is frozen, not while it is put together and written.
        """
        with storage_errors(self.folder):
            with lock:
                self._journal.begin(max(segments(self.folder), default=0) + 1, self._journal.number)
                taken = _snapshot_of(self._state, self.identity, self._journal.segment, self._journal.number)
                self._snapshot_at, self._rolled_back_to = self._journal.number, None
            for old in snapshots.pinned(self.folder):
                if old <= self._state.barrier:  # it cannot be returned to
                    snapshots.pin(self.folder, old, pinned=False)
            number = snapshots.write(self.folder, taken(), retain=self.retention, step=lambda name: step(name))
            self._damage = None  # it is the newest no more
            oldest = snapshots.oldest_segment(self.folder)
            for segment, path in segments(self.folder).items():
                if segment < oldest:
                    path.unlink(missing_ok=True)
            return number

    def rollback(self, steps: int, snapshot: int | None = None) -> int:
        """Restore the belief and observations of an older snapshot, or of this one; pending decisions stay pending."""
        self._journal.check()
        with storage_errors(self.folder):
            known = snapshots.numbers(self.folder)
        older = [each for each in known if each < (self._rolled_back_to or math.inf)]
        if snapshot is not None and snapshot not in known:
            raise InputError(f"snapshot must be one of {', '.join(map(str, known))}, got {snapshot}.")
        barrier = self._state.barrier
        if snapshot is not None and snapshot <= barrier:
            raise InputError(
                f"snapshot must be above {barrier}, got {snapshot}: since then another policy was adopted, or "
                "observations were removed."
            )
        older = [each for each in older if each > barrier]
        if snapshot is None and steps > len(older):
            raise InputError(f"steps must be at most {len(older)}, the number of older snapshots, got {steps}.")
        number, found = snapshots.read(self.folder, older[-steps] if snapshot is None else snapshot)
        self.append(Event("rollback", {"snapshot": number}, {}))
        try:
            self._state.apply(Event("rollback", found.fields["state"], found.arrays))
        except BaseException as problem:
            self.fail(problem)
            raise
        self._rolled_back_to = number
        return number

    def close(self) -> None:
        """Sync the journal and release the folder."""
        self._journal.close()

    def failure(self) -> str | None:
        """Why nothing more can be written, or that the newest snapshot is damaged, if so."""
        damage = None if self._damage is None else f"{self._damage}; the next snapshot takes its place"
        return "; ".join(filter(None, (self._journal.failure(), damage))) or None

    @property
    def newest(self) -> int:
        """The number of the newest snapshot."""
        return max(snapshots.numbers(self.folder), default=0)

    @property
    def bytes(self) -> int:
        """Size of the journal on disk."""
        size = 0
        for path in segments(self.folder).values():
            with suppress(FileNotFoundError):  # a snapshot may be deleting it
                size += path.stat().st_size
        return size

    def _begin(self) -> tuple[int, bool]:
        """Start a journal from a snapshot of the current state: empty, or restored from what `save` wrote."""
        if segments(self.folder):
            raise StorageError(
                f"{self.folder} has a journal but no snapshot to start from; restore the missing files from a backup."
            )
        snapshots.write(self.folder, _snapshot_of(self._state, self.identity, 1, 0)(), step=lambda name: step(name))
        return 0, True

    def _recover(self) -> tuple[int, bool]:
        """Restore the newest snapshot that is not damaged, and replay the journal since.

        Returns the number of the next record, and whether the folder was last used with these settings and versions.
        """
        snapshot, self._damage = snapshots.read_newest_intact(self.folder)
        if self._damage is not None:
            warn(f"{self._damage}.")
        self.identity = _restore(self._state, self.identity, snapshot, self.folder)
        number = self._snapshot_at = int(snapshot.fields["record"])
        first = int(snapshot.fields["segment"])
        if first == 0:
            self._give_secret()
            return self._begin()  # `save` wrote it: it has no journal yet
        for path, is_last in self._segments_from(first, number):
            for payload in read_segment(path, number, last=is_last, torn=self._count_torn):
                self._replay(path, *unpack(payload, path))
                number += 1
        self._state.absorb_buffer()
        self._state.abandon()
        is_same = not _tell_other_versions(snapshot, self.folder)
        return number, is_same and snapshot.fields["settings"] == self.identity.settings

    def _segments_from(self, first: int, record: int) -> list[tuple[Path, bool]]:
        """The segments to replay from `first` on, and whether each is the last."""
        found = {segment: path for segment, path in segments(self.folder).items() if segment >= first}
        if first not in found and (found or record):
            raise StorageError(
                f"{self.folder} lacks segment {first} of its journal; restore the missing file from a backup."
            )
        paths = list(found.values())
        while len(paths) > 1 and not holds_records(paths[-1]):
            # an empty segment: the one before it may still be torn at its end
            list(read_segment(paths.pop(), None, last=True, torn=self._count_torn))  # deletes it if it has no header
        return [(path, path == paths[-1]) for path in paths]

    def _replay(self, path: Path, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        kind = fields.pop("kind")
        if kind == "ids":
            self.identity = self.identity._replace(ids=DecisionIds.restored(fields))
            return
        if not self._state.knows(kind):
            raise StorageError(
                f"{self.folder} has an event {kind!r}, which this version does not know; update neuralucb."
            )
        if kind == "rollback":
            self._rolled_back_to, snapshot = snapshots.read(self.folder, fields["snapshot"])
            fields, arrays = snapshot.fields["state"], snapshot.arrays
        try:
            self._state.apply(Event(kind, fields, arrays))
            self._state.absorb_buffer(above=REPLAY_ROWS)
        except (ValueError, AssertionError) as problem:
            raise StorageError(
                f"{path} has an event {kind!r} that does not fit the bandit: {problem}; restore it from a backup."
            ) from problem
        self.replayed += 1

    def _give_secret(self) -> DecisionIds:
        """Ids with codes from here on, in a folder that version 0.1 wrote."""
        self.identity = self.identity._replace(ids=self.identity.ids.with_secret(self._state.ledger.reserved))
        return self.identity.ids

    def _count_torn(self, size: int) -> None:
        self.torn_bytes += size


def commit(keeper: Keeper | None, state: State, event: Event) -> None:
    """Write an event to the journal, if there is one, then apply it."""
    if keeper is not None:
        keeper.append(event)
    with _changing(keeper, state):
        state.apply(event)
        state.absorb_due()


def absorb(keeper: Keeper | None, state: State) -> None:
    """Let the belief know what was observed, if it is time."""
    with _changing(keeper, state):
        state.absorb_due()


def save(folder: Path, state: State, identity: Identity, lock: AbstractContextManager[Any]) -> Path:
    """Write a bandit to a folder, without a journal. The lock is held while the state is frozen."""
    with storage_errors(folder):
        if segments(folder) or (folder / "lock").exists():
            raise InputError(f"path must not be the folder of a journal, got {folder}; snapshot() writes there.")
        with lock:
            taken = _snapshot_of(state, identity, 0, 0)
        snapshots.write(folder, taken(), retain=Retention(1), step=lambda name: step(name))
    return folder


def restore_saved(state: State, identity: Identity, saved: Saved, folder: Path) -> Identity:
    """Restore what `save` wrote; returns the identity of the bandit that was saved."""
    restored = _restore(state, identity, saved.snapshot, folder)
    _tell_other_versions(saved.snapshot, folder)
    state.ledger.reserved = int(saved.snapshot.fields["given"])
    return restored._replace(ids=restored.ids.with_secret(state.ledger.reserved))


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Turns errors of the disk and of malformed fields into a StorageError that names the folder."""
    try:
        with storage_errors(folder):
            yield
    except MALFORMED as problem:
        raise StorageError(
            f"{folder} has contents that this version cannot read: {problem!r}; restore the files from a backup."
        ) from problem


def step(name: str) -> None:
    """Called with the name of every step of writing, before it; tests replace it to crash there."""


@contextmanager
def _changing(keeper: Keeper | None, state: State) -> Iterator[None]:
    """Ends all writing after an error, since journal and state differ then; logs the first refusal after a lesson."""
    refused, at_last_lesson = state.counts["refused"], state.lessons.refused
    try:
        yield
    except BaseException as problem:
        if keeper is not None:
            keeper.fail(problem)
        raise
    if state.counts["refused"] > refused == at_last_lesson:
        warn(refusal_words(state.counts["refused"] - refused))


def _snapshot_of(state: State, identity: Identity, segment: int, record: int) -> Callable[[], Snapshot]:
    """A bandit at this moment, put together by the function returned. The caller holds its lock, but not for that."""
    export = state.freeze()
    about = {
        **identity.ids.export(),
        "settings": identity.settings,
        "origin": _plain(state.programs.policy.origin),
        "leaves": state.kept.leaves,
        "structure": str(state.kept.structure),
        "given": state.ledger.reserved,
        "segment": segment,
        "record": record,
        **VERSIONS,
    }

    def snapshot() -> Snapshot:
        fields, arrays = export()
        return Snapshot({**about, "state": fields}, arrays, segment)

    return snapshot


def _restore(state: State, identity: Identity, snapshot: Snapshot, folder: Path) -> Identity:
    """Restore a snapshot, which must be of a bandit like this one; returns the identity with the snapshot's ids."""
    _check_same(state, identity, snapshot, folder)
    try:
        state.restore(snapshot.fields["state"], snapshot.arrays)
    except (ValueError, *MALFORMED) as problem:
        raise StorageError(f"{folder} does not hold the state of this bandit's policy: {problem}.") from problem
    return identity._replace(ids=DecisionIds.restored(snapshot.fields))


def _tell_other_versions(snapshot: Snapshot, folder: Path) -> bool:
    """Log that other versions wrote a snapshot, and return whether they did; version 0.1 did not record that of jax."""
    changed = [(name, snapshot.fields.get(name, now), now) for name, now in VERSIONS.items()]
    words = [f"{name.replace('version', 'neuralucb')} {then}, now {now}" for name, then, now in changed if then != now]
    if words:
        warn(f"{folder} was written with {' and '.join(words)}; numbers may differ from earlier ones in last digits.")
    return bool(words)


def _check_same(state: State, identity: Identity, snapshot: Snapshot, folder: Path) -> None:
    """Refuse to continue a folder with another policy, seed, window, normalization or shape of contexts."""
    shape, stored = state.kept, snapshot.fields
    compared = {name: (identity.settings[name], stored["settings"][name]) for name in FIXED_SETTINGS}
    compared["policy"] = _plain(identity.policy.origin), stored["origin"]
    compared["contexts"] = (
        [str(shape.structure), [[list(size), kind] for size, kind in shape.leaves]],
        [stored["structure"], stored["leaves"]],
    )
    for name, (value, expected) in compared.items():
        if value != expected:
            value, expected = _only_differing(value, expected)
            raise InputError(
                f"{folder} was made with {name} {expected!r}, but this bandit has {value!r}; choose another folder, or "
                "OnlineBandit.load(folder), which continues it as it was made."
            )


def _only_differing(value: Any, expected: Any) -> tuple[Any, Any]:
    """Of two policies' origins what differs: they have dozens of settings. Other values as they are."""
    if not isinstance(value, dict) or not isinstance(expected, dict):
        return value, expected
    flat = [
        {**{key: each for key, each in one.items() if key != "settings"}, **one["settings"]}
        for one in (value, expected)
    ]
    names = [key for key in dict.fromkeys((*flat[0], *flat[1])) if flat[0].get(key) != flat[1].get(key)]
    shown = [{key: one[key] for key in names if key in one} for one in flat]
    return shown[0], shown[1]


def _plain(origin: Origin | None) -> dict[str, Any] | None:
    """An origin as it is stored in JSON."""
    return None if origin is None else {**origin._asdict(), "settings": dict(origin.settings)}
