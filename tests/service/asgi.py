"""The service in this process, without a socket: requests go straight to the ASGI application."""

import asyncio
from contextlib import asynccontextmanager
from typing import NamedTuple

import orjson

from neuralucb.service.config import Config
from neuralucb.service.embedded import EmbeddedStore
from neuralucb.service.engine import Engine
from neuralucb.service.server import application
from neuralucb.service.store import Plan

CONFIG = Config(plan=Plan("lin-ucb", slots=16, floor=0.2), arms=4)


class Answered(NamedTuple):
    status: int
    headers: dict
    data: bytes

    @property
    def json(self):
        def refuse(word):
            raise AssertionError(f"{word} is no JSON")

        import json

        return json.loads(self.data, parse_constant=refuse)


class Client:
    """Sends requests to an application."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, method, path, body=None, *, headers=(), raw=None, kind=b"application/json"):
        data = raw if raw is not None else (b"" if body is None else orjson.dumps(body))
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode("latin-1", "replace"),
            "headers": [(b"content-type", kind), *headers],
        }  # fmt: skip
        sent = []

        async def receive():
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        start, end = sent
        return Answered(start["status"], dict(start["headers"]), end["body"])


@asynccontextmanager
async def served(folder, config=CONFIG, store=None):
    """A client of a service over a folder."""
    made = store or EmbeddedStore(folder, config.plan, arms=config.arms)
    app = application(lambda: Engine(made, config), config)
    inbox, started, stopped = asyncio.Queue(), asyncio.Event(), asyncio.Event()

    async def send(message):
        (started if "startup" in message["type"] else stopped).set()

    life = asyncio.create_task(app({"type": "lifespan"}, inbox.get, send))
    await inbox.put({"type": "lifespan.startup"})
    await started.wait()
    try:
        yield Client(app)
    finally:
        await inbox.put({"type": "lifespan.shutdown"})
        await life


def play(scenario, folder, config=CONFIG, store=None):
    """Run `await scenario(client)` to its end."""

    async def run():
        async with served(folder, config, store) as client:
            return await scenario(client)

    return asyncio.run(run())
