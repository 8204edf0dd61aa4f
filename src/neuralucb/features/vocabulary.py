"""Which slot of a vector a feature has: names take slots of their own while there are some, and are hashed beyond.

Each name takes the next free slot when it is first seen, so that few features never collide; when slots are used up, or
one category has too many values, further names are hashed with a sign into slots that are reserved for them (Weinberger
et al. 2009). The names in order are all that must be saved: the same names give the same vectors for ever.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from neuralucb.runtime.errors import InputError

__all__ = ["Vocabulary", "hashed_slot", "own_slots"]

HASHED_SHARE = 4
"""One slot in so many is reserved for names that are hashed."""

MOST_VALUES, FEW_VALUES = 6, 8
"""One category has at most 1/6 of the slots that names have of their own, or 8 if that is more, but never more than
half of them: an identifier must not take them all."""

FREE, HASHED = "free[{}]", "hashed[{}]"
"""How slots without a name are called where every slot must have one."""

_VERSION = b"neuralucb features 1"
"""Goes into every hash: another way of hashing must be another version."""


class Vocabulary:
    """Names with slots of their own, in the order in which they took them. It only grows.

    Args:
        slots: The size of a vector, at least 4.
        names: Those of an earlier vocabulary of this size.

    Raises:
        InputError: The size is too small, or the names do not fit.

    Example:
        >>> vocabulary = Vocabulary(8)
        >>> vocabulary.assign(["context/age", "arm/price"])
        {'context/age': 0, 'arm/price': 1}
        >>> vocabulary.assign(["arm/price"])
        {'arm/price': 1}
    """

    def __init__(self, slots: int, names: Iterable[str] = ()) -> None:
        if not isinstance(slots, int) or slots < HASHED_SHARE:
            raise InputError(f"slots must be a whole number of at least {HASHED_SHARE}, got {slots!r}.")
        self.slots = slots
        self.places: dict[str, int] = {}
        """the slot of each name"""
        self._values: Counter[str] = Counter()
        """values of each category that have a slot"""
        given = list(names)
        if len(set(given)) < len(given) or len(given) > own_slots(slots):
            raise InputError(f"names must be distinct, and at most {own_slots(slots)} for {slots} slots, got {given}.")
        for name in given:
            self._put(name)

    @classmethod
    def from_slot_names(cls, names: Sequence[str]) -> "Vocabulary":
        """The vocabulary whose `slot_names` these are."""
        used = [name for index, name in enumerate(names) if name not in (FREE.format(index), HASHED.format(index))]
        vocabulary = cls(len(names), used)
        if vocabulary.slot_names() != list(names):
            raise InputError(f"names must be those of an encoder's slots, got {list(names)!r:.80}.")
        return vocabulary

    @property
    def names(self) -> list[str]:
        """In order: the i-th has slot i."""
        return list(self.places)

    def assign(self, names: Iterable[str]) -> dict[str, int]:
        """Slots for these names, new ones in order while they are free; a name that gets none is missing."""
        for name in names:
            if name not in self.places and self.is_free_for(name):
                self._put(name)
        return {name: self.places[name] for name in names if name in self.places}

    def adopt(self, assigned: Mapping[str, int]) -> None:
        """Take over slots that were assigned elsewhere, where others may know more names than are known here."""
        for name, slot in assigned.items():
            if name not in self.places:
                self._put(name, slot)

    def is_free_for(self, name: str) -> bool:
        """Whether a new name would get a slot."""
        own = own_slots(self.slots)
        category, is_value, _ = name.partition("=")
        most = min(max(FEW_VALUES, own // MOST_VALUES), own // 2)
        return len(self.places) < own and not (is_value and self._values[category] >= most)

    def slot_names(self) -> list[str]:
        """A name for every slot: features, then `free[i]`, then `hashed[i]`."""
        own = own_slots(self.slots)
        free = [FREE.format(slot) for slot in range(len(self.places), own)]
        return [*self.places, *free, *(HASHED.format(slot) for slot in range(own, self.slots))]

    def _put(self, name: str, slot: int | None = None) -> None:
        self.places[name] = len(self.places) if slot is None else slot
        category, is_value, _ = name.partition("=")
        if is_value:
            self._values[category] += 1


def own_slots(slots: int) -> int:
    """How many of so many slots names may have of their own; names are hashed into the others, which follow.

    Args:
        slots: The size of a vector.

    Returns:
        Three quarters of them.

    Example:
        >>> own_slots(128)
        96
    """
    return slots - slots // HASHED_SHARE


def hashed_slot(name: str, slots: int) -> tuple[int, float]:
    """Where a name that has no slot of its own is hashed.

    Args:
        name: The feature's.
        slots: The size of a vector.

    Returns:
        One of the reserved slots, and the sign with which the feature's number is added there.

    Example:
        >>> slot, sign = hashed_slot("context/city=Oslo", 128)
        >>> 96 <= slot < 128, abs(sign)
        (True, 1.0)
    """
    digest = int.from_bytes(hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8, key=_VERSION).digest())
    own = own_slots(slots)
    return own + (digest >> 1) % (slots - own), 1.0 if digest & 1 else -1.0
