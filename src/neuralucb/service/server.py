"""The server: a socket, signals, and one line on stdout once it is ready."""

import asyncio
import gc
import signal
import sys
import threading
from collections.abc import Callable
from itertools import count

from neuralucb.runtime.errors import InputError
from neuralucb.service import dashboard, openapi, operations, personalizer, status, v1
from neuralucb.service.config import Config, is_loopback
from neuralucb.service.connection import Connection
from neuralucb.service.engine import Engine
from neuralucb.service.http import Application
from neuralucb.service.one_core import OneCore
from neuralucb.service.store import Store
from neuralucb.service.stores import open_store

__all__ = ["application", "check_address", "serve"]

GRACE_SECONDS = 30
"""For requests under way when the service is told to stop."""

LOOK_SECONDS = 0.25
"""Between two looks for clients that take too long."""

CORE_LOOKS = 8
"""Of them, from one look at which core has most time to the next."""

END_SECONDS = 0.01
"""Between two looks whether all requests under way are answered."""

WAITING = 2048
"""Connections that the system keeps until they are accepted."""

SWITCH_SECONDS = 0.0005
"""After which a thread that waits for Python's lock gets it: a decision must not wait 5 ms for a lesson's thread."""


YOUNG = 7_000
"""Objects made since, after which the collector looks at the young ones: JAX has work of its own done each time."""

RARELY = 2_000
"""Collections of young objects before the collector looks at all of them: with 50 000 events remembered that takes
0.1 s, in which nobody is answered. At 500 decisions per second it is every quarter of an hour."""


def serve(address: str, config: Config, *, host: str, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C: requests under way are finished, and the store is closed.

    Raises InputError or StorageError if it cannot start.
    """
    check_address(host, config)
    gc.collect()
    gc.disable()  # a restored store is all objects that stay: looking at them while it is opened takes a second
    try:
        store = open_store(address, config.plan, sync=config.sync, arms=config.arms, retention=config.retention)
    except BaseException:
        gc.enable()
        raise
    try:
        if config.settings is not None and config.settings != store.settings():
            store.configure(config.settings)
        for name, candidate in config.candidates.items():
            if name != store.deciding()[0]:  # it was promoted
                store.put_candidate(name, candidate)
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.freeze()  # what exists now stays: the collector need not look at it again
        gc.enable()
        gc.set_threshold(YOUNG, gc.get_threshold()[1], RARELY)
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            runner.run(_serve(store, config, host, port))
    finally:
        gc.enable()
        store.close()


def application(engine: Engine, config: Config) -> Application:
    """All routes."""
    return Application(
        engine,
        config,
        (*v1.ROUTES, *operations.ROUTES, *status.ROUTES, *dashboard.ROUTES, *personalizer.ROUTES, *openapi.ROUTES),
    )


def check_address(host: str, config: Config) -> None:
    """Refuse an address that others can reach, unless they need a token."""
    if not is_loopback(host) and not config.tokens.required:
        raise InputError(
            f"--host {host} can be reached from other machines, so that requests need tokens: set [tokens] in the file "
            "of --config, or serve on 127.0.0.1."
        )


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, where there is one: it takes half the time per request."""
    try:
        from uvloop import new_event_loop
    except ModuleNotFoundError:  # as on Windows
        return None
    return new_event_loop


async def _serve(store: Store, config: Config, host: str, port: int) -> None:
    loop, told, connections = asyncio.get_running_loop(), asyncio.Event(), set[Connection]()
    for each in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(each, told.set)
        except NotImplementedError:  # as on Windows
            signal.signal(each, lambda *_: loop.call_soon_threadsafe(told.set))
    engine = await loop.run_in_executor(None, lambda: Engine(store, config))
    app = application(engine, config)
    try:
        listening = await loop.create_server(
            lambda: Connection(app.respond, config.limits, connections), host, port, backlog=WAITING
        )
    except OSError as problem:
        await app.close()
        raise InputError(
            f"--host {host} --port {port} cannot be used: {problem.strerror or problem}; is another process listening "
            "there?"
        ) from None
    await app.start()
    threads = threading.get_native_id(), engine.deciding.thread, engine.rewarding.thread
    watcher = loop.create_task(_watch(connections, OneCore([each for each in threads if each is not None])))
    address, number = listening.sockets[0].getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    print(f"neuralucb serves http://{shown}:{number}", flush=True)
    await told.wait()
    app.stopping = True
    listening.close()
    for connection in list(connections):
        connection.end()
    latest = loop.time() + GRACE_SECONDS
    while connections and loop.time() < latest:
        await asyncio.sleep(END_SECONDS)
    watcher.cancel()
    await app.close()


async def _watch(connections: set[Connection], one_core: OneCore) -> None:
    """Cut off clients that take too long, and keep to the core that has most time."""
    loop = asyncio.get_running_loop()
    for look in count():
        await asyncio.sleep(LOOK_SECONDS)
        if look % CORE_LOOKS == 0:
            one_core.look()
        now = loop.time()
        for connection in list(connections):
            connection.expire(now)
