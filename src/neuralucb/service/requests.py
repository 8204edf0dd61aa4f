"""From what clients ask to the requests that a store decides: arms looked up, features encoded, sameness noted."""

import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from neuralucb.features import Encoder
from neuralucb.features.encoder import Features
from neuralucb.features.flatten import read_alike
from neuralucb.runtime.errors import InputError
from neuralucb.service.bodies import Ask
from neuralucb.service.errors import ServiceError
from neuralucb.service.sameness import digest_of
from neuralucb.service.shown import Shown
from neuralucb.service.store import Request, Settings, Store

__all__ = ["read_asks"]


KINDS = 1024
"""Numbers of arms for which it is remembered that all are allowed."""


class _Draft(NamedTuple):
    """A request but for its contexts."""

    ask: Ask
    features: Features
    ids: tuple[str, ...]
    allowed: np.ndarray
    imposed: int | None
    digest: bytes


def read_asks(asks: Sequence[Ask], encoder: Encoder, store: Store) -> list[Request | Exception]:
    """The request of each, or what is wrong with it; those that are alike are encoded together."""
    settings = store.settings()
    registered: dict[str, Any] | None = None
    read: list[_Draft | ServiceError] = []
    for ask in asks:
        if registered is None and _needs_registered(ask):
            registered = {arm.id: arm.features for arm in store.arms()}
        try:
            read.append(_draft(ask, registered or {}, settings))
        except ServiceError as problem:
            read.append(problem)
    drafts = [each for each in read if isinstance(each, _Draft)]
    encoded = iter(encoder.encode_many([each.features for each in drafts]))
    return [_request(each, next(encoded)) if isinstance(each, _Draft) else each for each in read]


def _needs_registered(ask: Ask) -> bool:
    return ask.ids is None or None in ask.features


def _draft(ask: Ask, registered: Mapping[str, Any], settings: Settings) -> _Draft:
    ids, features = ask.ids, ask.features
    needs_registered = _needs_registered(ask)
    if ids is None:
        ids, features = tuple(registered), tuple(registered.values())
        if not ids:
            raise ServiceError("invalid_request", "arms must be given: none are registered.", "arms")
    elif needs_registered:
        pairs = zip(ids, features, strict=True)
        features = tuple(registered.get(each) if given is None else given for each, given in pairs)
    excluded = {*ask.excluded, *settings.excluded}
    allowed = np.array([each not in excluded for each in ids]) if excluded else _all(len(ids))
    if excluded and not allowed.any():
        whom = " by the request or by the operator" if settings.excluded else ""
        raise ServiceError("invalid_request", f"at least one arm must not be excluded{whom}.", "excluded")
    imposed = int(allowed.argmax()) if settings.mode == "apprentice" else None
    if settings.pinned in ids and allowed[ids.index(settings.pinned)]:
        imposed = ids.index(settings.pinned)
    alike = read_alike(features, from_json=True) if ask.alike is None else ask.alike
    digest = digest_of(ask, None if needs_registered else alike)
    return _Draft(ask, Features(ask.context, features, alike, ids), ids, allowed, imposed, digest)


@lru_cache(maxsize=KINDS)
def _all(count: int) -> np.ndarray:
    """So many arms that are allowed; never written to."""
    allowed = np.ones(count, bool)
    allowed.flags.writeable = False
    return allowed


def _request(draft: _Draft, contexts: np.ndarray | Exception) -> Request | Exception:
    if isinstance(contexts, InputError):
        return ServiceError("invalid_features", str(contexts))
    if isinstance(contexts, Exception):
        return contexts
    ask, ids = draft.ask, draft.ids
    return Request(
        ask.event_id or secrets.token_hex(16), contexts, ids, draft.allowed,
        Shown(ask.context, ids, draft.features.alike or draft.features.arms), draft.digest, ask.deferred,
        draft.imposed, ask.user,
    )  # fmt: skip
