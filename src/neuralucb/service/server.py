"""The server: a socket, uvicorn, signals, and one line on stdout once it is ready."""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from neuralucb.runtime.errors import InputError
from neuralucb.service import dashboard, openapi, operations, personalizer, status, v1
from neuralucb.service.config import Config, is_loopback
from neuralucb.service.engine import Engine
from neuralucb.service.http import Application
from neuralucb.service.store import Store
from neuralucb.service.stores import open_store

__all__ = ["application", "check_address", "serve"]

GRACE_SECONDS = 30
"""For requests under way when the service is told to stop."""

KEEP_ALIVE_SECONDS = 65
"""For a connection without requests: longer than load balancers keep theirs, so that they close first."""

SWITCH_SECONDS = 0.0005
"""After which a thread that waits for Python's lock gets it: a decision must not wait 5 ms for a lesson's thread."""


RARELY = 1000
"""Collections of young objects before the collector looks at all of them: with 50 000 events remembered that takes
0.1 s, in which nobody is answered."""


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
        gc.set_threshold(*gc.get_threshold()[:2], RARELY)
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            runner.run(_serve(store, config, host, port))
    finally:
        gc.enable()
        store.close()


def application(open_engine: Callable[[], Engine], config: Config) -> Application:
    """All routes, as an ASGI application."""
    return Application(
        open_engine,
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
    app = application(lambda: Engine(store, config), config)
    settings = uvicorn.Config(
        app, host=host, port=port, http=_protocol(config.limits.seconds), ws="none", log_level="warning",
        access_log=False, server_header=False, date_header=False, lifespan="on",
        limit_concurrency=config.limits.connections, timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )  # fmt: skip
    server = _Server(settings)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        app.stopping = server.should_exit = True

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop)
    await server.serve()
    if app.failure is not None:
        raise app.failure
    if not server.started and not app.stopping:
        raise InputError(f"--host {host} --port {port} cannot be used: is another process listening there?")


class _Server(uvicorn.Server):
    """Says when it is ready, and leaves signals to us."""

    async def startup(self, sockets: Any = None) -> None:
        """Listen; then say where."""
        try:
            await super().startup(sockets)
        except SystemExit:  # the port is taken; uvicorn has said so
            self.should_exit = True
            return
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            print(f"neuralucb serves http://{shown}:{port}", flush=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing: `_serve` has set its own."""
        yield


def _protocol(seconds: float) -> type[HttpToolsProtocol]:
    """HTTP with a limit on how long the head of a request may take: a slow client must not keep a connection."""

    class Timed(HttpToolsProtocol):
        timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.start_timer()

        def data_received(self, data: bytes) -> None:
            if self.timer is None and (self.cycle is None or self.cycle.response_complete):
                self.start_timer()
            super().data_received(data)

        def on_headers_complete(self) -> None:
            self.stop_timer()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self.stop_timer()
            super().connection_lost(exc)

        def start_timer(self) -> None:
            self.timer = self.loop.call_later(seconds, self.transport.close)

        def stop_timer(self) -> None:
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

    return Timed
