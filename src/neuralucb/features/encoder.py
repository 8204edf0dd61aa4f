"""The encoder: from nested objects of numbers, strings and booleans to vectors of one fixed size."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from neuralucb.features.flatten import Alike, Flat, flatten, objects_of, prefixed, read_alike, with_products
from neuralucb.features.vocabulary import Vocabulary, hashed_slot
from neuralucb.runtime.errors import InputError, StorageError

__all__ = ["ARM_ID", "Counts", "Encoder", "Features"]

LAYOUTS = 4096
"""Kinds of objects whose slots are remembered."""

REFUSED = 100_000
"""Names without a slot that are remembered."""

LARGEST = float(np.finfo(np.float32).max)

OVERFLOW = "features must be small enough for float32, got some that overflow it where they add up."

ARM_ID = "arm/id"
"""The feature of an arm that has no others: without it arms could not be told apart.

Example:
    >>> ARM_ID
    'arm/id'
"""


class Counts(NamedTuple):
    """What an encoder has seen since it was made.

    Example:
        >>> encoder = Encoder(16)
        >>> rows = encoder.encode({"age": 30}, [{"price": 2.5}])
        >>> encoder.counts.objects
        1
    """

    objects: int
    named: int
    """names that took a slot of their own"""
    hashed: int
    """features of an object whose name was hashed, since no slot was free or the category had too many values"""
    missing: int
    """features that were null"""


class _Layout(NamedTuple):
    """Where the numbers of objects of one kind go."""

    slots: np.ndarray
    signs: np.ndarray | None
    """None where all are 1"""
    distinct: bool
    """whether no slot occurs twice"""
    hashed: int


class Features(NamedTuple):
    """What one decision is made from."""

    context: Any
    arms: Sequence[Any]
    """may be empty if `alike` is given"""
    alike: Alike | None
    """the arms, if they are alike"""
    ids: Sequence[str] | None


class Encoder:
    """Vectors for nested objects of numbers, strings, booleans and lists of numbers.

    Objects in objects are namespaces. true is 1; false, null and what is missing are 0. A string is a category. A list
    is a vector, `name[0]`, …; a list of objects counts as one object. Keys that begin with `_` are ignored. These are
    the names that logs in dsjson get, too.

    Args:
        slots: d, the size of a vector.
        vocabulary: The names of an earlier encoder of this size, in order.
        interactions: Pairs of prefixes of names, such as `("context/User", "arm")`: the products of all features below
            the first with all below the second are features too.
        assign: Where slots for new names come from, if not from this process: names to slots, such as
            `Store.assign_slots`. It must keep them before it returns.

    Raises:
        InputError: An argument cannot be used.

    Example:
        >>> encoder = Encoder(16)
        >>> rows = encoder.encode({"age": 30, "country": "de"}, [{"price": 2.5}, {"price": 9.0, "new": True}])
        >>> rows.shape, rows[1, :4].tolist()
        ((2, 16), [30.0, 1.0, 9.0, 1.0])
        >>> encoder.vocabulary.names
        ['context/age', 'context/country=de', 'arm/price', 'arm/new']
    """

    def __init__(
        self,
        slots: int,
        vocabulary: Iterable[str] = (),
        *,
        interactions: Iterable[tuple[str, str]] = (),
        assign: Callable[[Sequence[str]], Mapping[str, int]] | None = None,
    ) -> None:
        self.vocabulary: Vocabulary = Vocabulary(slots, vocabulary)
        self.interactions: tuple[tuple[str, str], ...] = _read_interactions(interactions)
        self._assign = assign
        self._layouts: dict[tuple[str, ...], _Layout] = {}
        self._refused: set[str] = set()
        """names that asked for a slot and got none: vocabularies do not shrink, so that asking again is useless"""
        self._objects = self._hashed = self._missing = 0
        self._started_with = len(self.vocabulary.places)

    @property
    def slots(self) -> int:
        """The size of a vector."""
        return self.vocabulary.slots

    @property
    def counts(self) -> Counts:
        """What has been seen so far."""
        named = len(self.vocabulary.places) - self._started_with
        return Counts(self._objects, named, self._hashed, self._missing)

    def encode(self, context: Any, arms: Sequence[Any], ids: Sequence[str] | None = None) -> np.ndarray:
        """The vectors of a decision's arms: one row per arm, of what they share and what each has of its own.

        Args:
            context: An object, a list of objects, or None.
            arms: The same for each arm.
            ids: Of the arms: the category `arm/id` of those that have no features.

        Returns:
            (K, slots) float32.

        Raises:
            InputError: Arms are not a list; or a value is of another type, not finite or too large for float32, or
                nested too deeply. No slot has been taken.
        """
        if not isinstance(arms, list | tuple):
            raise InputError(f"arms must be a list, an object per arm, got {arms!r:.80}.")
        (rows,) = self.encode_many([Features(context, arms, read_alike(arms), ids)])
        if isinstance(rows, Exception):
            raise rows
        return rows

    def encode_many(self, decisions: Sequence["Features"]) -> list[np.ndarray | Exception]:
        """The vectors of many decisions, of each what `encode` returns or raises: alike ones are encoded together."""
        made: dict[int, np.ndarray | Exception] = {}
        groups: dict[Any, list[tuple[int, Flat]]] = {}
        for index, each in enumerate(decisions):
            try:
                shared = flatten(each.context, "context")
            except InputError as problem:
                made[index] = problem
                continue
            names = None if each.alike is None or self.interactions else prefixed("arm", each.alike.keys)
            groups.setdefault(index if names is None else (shared.names, names), []).append((index, shared))
        for key, members in groups.items():  # in the order in which they came, so that names get slots in that order
            if isinstance(key, tuple):
                common, own = key
                made |= self._encode_alike(decisions, common, own, members)
                continue
            ((index, shared),) = members
            try:
                made[index] = self._encode_one(shared, decisions[index])
            except (InputError, StorageError) as problem:
                made[index] = problem
        return [made[index] for index in range(len(decisions))]

    def _encode_one(self, shared: Flat, given: "Features") -> np.ndarray:
        """One decision whose arms are not alike."""
        arms = objects_of(given.alike) if given.alike is not None and not given.arms else given.arms
        own = self._flattened(shared, arms, given.ids)
        parts = _parts(own)
        common = _floats(shared.names, shared.values)
        self._require_slots([shared.names, *(names for names, _ in parts)])
        rows = np.zeros((len(arms), self.slots), np.float32)
        self._add(rows, shared.names, common)
        for first, (names, part) in enumerate(parts):  # one part for all rows, or one per row
            self._add(rows[first : first + len(part)], names, part)
        if not np.isfinite(rows).all():
            raise InputError(OVERFLOW)
        self._objects += 1
        self._missing += shared.missing + sum(each.missing for each in own)
        return rows

    def _encode_alike(
        self, decisions: Sequence["Features"], common: tuple[str, ...], own: tuple[str, ...],
        members: list[tuple[int, Flat]],
    ) -> dict[int, np.ndarray | Exception]:  # fmt: skip
        """Decisions with the same names; where together they cannot be, each for itself."""
        numbers = [alike.numbers for index, _ in members if (alike := decisions[index].alike) is not None]
        counts = [len(each) for each in numbers]
        try:
            arms = _checked(own, np.concatenate(numbers))
            shared = _floats(common, *(flat.values for _, flat in members))
            self._require_slots([common, own])
            rows = np.zeros((len(arms), self.slots), np.float32)
            self._add(rows, common, np.repeat(shared, counts, axis=0))
            self._add(rows, own, arms)
            if not np.isfinite(rows).all():
                raise InputError(OVERFLOW)
        except StorageError as problem:
            return dict.fromkeys((index for index, _ in members), problem)
        except InputError as problem:
            if len(members) == 1:
                return {members[0][0]: problem}
            return {k: v for one in members for k, v in self._encode_alike(decisions, common, own, [one]).items()}
        self._objects += len(members)
        self._missing += sum(flat.missing for _, flat in members)
        ends = np.cumsum(counts).tolist()
        return {index: rows[end - count : end] for (index, _), count, end in zip(members, counts, ends, strict=True)}

    def _flattened(self, shared: Flat, arms: Sequence[Any], ids: Sequence[str] | None) -> list[Flat]:
        """The features of each arm, its id where it has none, and products."""
        own = [flatten(arm, "arm") for arm in arms]
        if ids is not None:
            own = [
                part if part.names else Flat((f"{ARM_ID}={name}",), (1.0,), part.missing)
                for name, part in zip(ids, own, strict=True)
            ]
        if self.interactions:
            own = [with_products(shared, part, self.interactions) for part in own]
        return own

    def _require_slots(self, kinds: Sequence[tuple[str, ...]]) -> None:
        """Slots for names of objects of kinds that are seen for the first time."""
        if any(names and names not in self._layouts for names in kinds):
            self._learn_names(chain.from_iterable(kinds))

    def _learn_names(self, names: Iterable[str]) -> None:
        """Slots for names that are seen for the first time."""
        places, refused = self.vocabulary.places, self._refused
        new = [name for name in dict.fromkeys(names) if name not in places and name not in refused]
        new = [name for name in new if self.vocabulary.is_free_for(name)]
        if not new:
            return
        if self._assign is None:
            self.vocabulary.assign(new)
        else:
            self.vocabulary.adopt(self._assign(new))
        if len(refused) > REFUSED:
            refused.clear()
        refused.update(name for name in new if name not in places)
        self._layouts.clear()

    def _add(self, rows: np.ndarray, names: tuple[str, ...], values: np.ndarray) -> None:
        """Add numbers (n, len(names)) to n rows."""
        if not names:
            return
        layout = self._layouts.get(names)
        if layout is None:
            layout = self._layout(names)
            if len(self._layouts) >= LAYOUTS:
                self._layouts.clear()
            self._layouts[names] = layout
        self._hashed += layout.hashed * len(rows)
        signed = values if layout.signs is None else values * layout.signs
        with np.errstate(over="ignore"):  # who calls refuses what is not finite then
            if layout.distinct:
                rows[:, layout.slots] += signed
            else:
                for slot, column in zip(layout.slots.tolist(), signed.T, strict=True):
                    rows[:, slot] += column

    def _layout(self, names: tuple[str, ...]) -> _Layout:
        places = self.vocabulary.places
        located = [(places[name], 1.0) if name in places else hashed_slot(name, self.slots) for name in names]
        slots = np.array([slot for slot, _ in located], np.intp)
        signs = np.array([sign for _, sign in located], np.float32)
        distinct = len(set(slots.tolist())) == len(slots)
        hashed = sum(name not in places for name in names)
        return _Layout(slots, None if (signs == 1).all() else signs, distinct, hashed)


def _parts(own: Sequence[Flat]) -> list[tuple[tuple[str, ...], np.ndarray]]:
    """Names and numbers: of all arms together where they have the same names, else of each."""
    if own and all(each.names == own[0].names for each in own):
        return [(own[0].names, _floats(own[0].names, *(each.values for each in own)))]
    return [(each.names, _floats(each.names, each.values)) for each in own]


def _floats(names: tuple[str, ...], *rows: tuple[float, ...]) -> np.ndarray:
    """(n, len(names)) float32, all finite."""
    try:
        return _checked(names, np.array(rows, np.float64))
    except OverflowError:
        raise _too_large(names, rows) from None


def _checked(names: tuple[str, ...], numbers: np.ndarray) -> np.ndarray:
    """The numbers in float32, all finite."""
    if not (np.abs(numbers) <= LARGEST).all():
        raise _too_large(names, numbers.tolist())
    return numbers.astype(np.float32)


def _too_large(names: tuple[str, ...], rows: Iterable[Sequence[float]]) -> InputError:
    name, value = next(pair for row in rows for pair in zip(names, row, strict=True) if not abs(pair[1]) <= LARGEST)
    cure = "; None, or null, where it is missing." if value != value else "."
    return InputError(f"feature {name!r:.80} must be finite, in float32, got {value!s:.40}{cure}")


def _read_interactions(interactions: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    read = tuple(tuple(pair) for pair in interactions)
    for pair in read:
        if len(pair) != 2 or not all(
            isinstance(each, str) and each.split("/")[0] in ("context", "arm") for each in pair
        ):
            raise InputError(
                f"interactions must be pairs of names that begin with context or arm, got {pair!r:.80}; for example "
                '("context/User", "arm").'
            )
    return tuple((first, second) for first, second in read)
