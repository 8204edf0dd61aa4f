"""What makes two requests the same: a digest of all that was sent, in whatever order an object has its keys."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

from neuralucb.features.flatten import Alike, read_alike
from neuralucb.service.bodies import Ask
from neuralucb.service.errors import ServiceError

__all__ = ["digest_of"]

KINDS = 4096
"""Kinds of objects whose keys in order are remembered."""

ITEM = 8
"""Bytes of a number."""


def digest_of(ask: Ask, alike: Alike | None) -> bytes:
    """16 bytes. Registered features are not part of it: they may change before a request is repeated.

    alike  the features of its arms as they were sent, if they are alike
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(_text([ask.ids, sorted(ask.excluded), ask.deferred, ask.user, ask.context]))
    if alike is not None:
        _add(digest, alike)
        return digest.digest()
    for features in ask.features:
        one = read_alike([features])
        if one is None:
            digest.update(_text(features))
        else:
            _add(digest, one)
    return digest.digest()


def _add(digest: Any, alike: Alike) -> None:
    """Objects of numbers alone, each as one by itself would be added."""
    kind, order = _kind(alike.keys)
    size = ITEM * len(order)
    rows = alike.numbers.take(order, axis=1).tobytes()
    digest.update(b"".join([part for at in range(0, len(rows), size) for part in (kind, rows[at : at + size])]))


@lru_cache(maxsize=KINDS)
def _kind(keys: Sequence[str]) -> tuple[bytes, np.ndarray]:
    """Sorted keys as bytes, and the order that sorts them."""
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return b"numbers" + _text([keys[index] for index in order]), np.array(order, np.intp)


def _text(value: Any) -> bytes:
    """JSON with its length: one text after another must not read as others do."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        raise ServiceError("invalid_request", "the body is nested too deeply.") from None
    return len(text).to_bytes(8) + text
