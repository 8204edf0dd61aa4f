"""The service in this process, without a socket: requests go straight to the application."""

import asyncio
from contextlib import asynccontextmanager
from typing import NamedTuple

import orjson

from neuralucb.service.config import Config
from neuralucb.service.embedded import EmbeddedStore
from neuralucb.service.engine import Engine
from neuralucb.service.http import Incoming
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
        sent = [(b"content-type", kind), *headers]
        reply = await self.app.respond(Incoming(method, path.encode("latin-1", "replace"), sent, data))
        named = {b"content-type": reply.kind} if reply.body else {}
        return Answered(reply.status, named | dict(reply.headers), reply.body)


@asynccontextmanager
async def served(folder, config=CONFIG, store=None):
    """A client of a service over a folder."""
    made = store or EmbeddedStore(folder, config.plan, arms=config.arms)
    app = application(Engine(made, config), config)
    await app.start()
    try:
        yield Client(app)
    finally:
        await app.close()


def play(scenario, folder, config=CONFIG, store=None):
    """Run `await scenario(client)` to its end."""

    async def run():
        async with served(folder, config, store) as client:
            return await scenario(client)

    return asyncio.run(run())
