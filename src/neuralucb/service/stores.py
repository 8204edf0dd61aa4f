"""A store by its address: a folder, or a database."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from neuralucb.features import Encoder
from neuralucb.online.journal import Sync
from neuralucb.online.snapshots import Retention
from neuralucb.runtime.errors import InputError
from neuralucb.service.store import Plan, Store

__all__ = ["open_store"]


def open_store(
    address: str, plan: Plan, *, sync: Sync = "interval", arms: int = 16, retention: tuple[int, int] | None = None
) -> Store:
    """Open a store, or make it.

    address  a folder, or postgresql://USER@HOST/DATABASE
    plan     which bandit a new one gets
    sync     of a folder's journal
    retention  the last so many snapshots are kept, and the last of each of so many days; None: as the store does
    arms     for how many arms decisions are compiled before the first
    """
    Encoder(plan.slots, interactions=plan.interactions)  # a plan is kept for ever: refuse it before it is written
    if address.startswith(("postgresql://", "postgres://")):
        try:
            module = import_module("neuralucb.service.postgres")
        except ModuleNotFoundError as problem:
            raise InputError(
                f"--store postgresql://… needs {problem.name}: pip install 'neuralucb[postgres]'."
            ) from None
        opened = module.open_postgres(address, plan, snapshots=retention)
        return _ready(opened, partial(opened.warm_up, arms))
    if "://" in address:
        raise InputError(f"--store must be a folder, or postgresql://…, got {address.partition('://')[0]!r:.40}://….")
    from neuralucb.service.embedded import RETENTION, EmbeddedStore

    kept = RETENTION if retention is None else Retention(*retention)
    store = EmbeddedStore(Path(address), plan, sync=sync, arms=arms, retention=kept, learning="process")
    return _ready(store, store.warm_up)


def _ready(store: Store, warm_up: Callable[[], None]) -> Store:
    """The store, once it has compiled what the first requests need; closed if that fails."""
    try:
        warm_up()
    except BaseException:
        store.close()
        raise
    return store
