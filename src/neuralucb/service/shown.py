"""The features of a request as they are kept: for `explain`, audit and export, never for a decision."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from neuralucb.features.flatten import Alike, objects_of

__all__ = ["Shown", "in_json"]


class Shown(NamedTuple):
    """Context and arms as they came; alike arms take a tenth of the memory of objects."""

    context: Any
    ids: tuple[str, ...]
    arms: Alike | Sequence[Any]


def in_json(features: Any) -> bytes:
    """Features of a `Request`, whose numbers are those that the encoder read, in double precision."""
    if not isinstance(features, Shown):
        return orjson.dumps(features)
    arms = objects_of(features.arms) if isinstance(features.arms, Alike) else features.arms
    return orjson.dumps({"context": features.context, "arms": dict(zip(features.ids, arms, strict=True))})
