"""The ASGI application: routes, tokens, limits and errors. What a route does is in `v1.py` and `personalizer.py`."""

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

import orjson

from neuralucb.service.config import Config, Tokens, is_local_name
from neuralucb.service.engine import Engine
from neuralucb.service.errors import ServiceError, as_service_error, error_body
from neuralucb.service.metrics import Metrics

__all__ = ["Application", "Call", "Reply", "Route", "json_reply"]

Role: TypeAlias = Literal["decide", "reward", "admin", "read", "anyone"]
Message: TypeAlias = dict[str, Any]

LARGEST_PATH = 8192
"""Bytes: two ids of 256 characters take up to 12 each when they are quoted."""


class Reply(NamedTuple):
    """What is sent."""

    status: int
    body: bytes = b""
    kind: bytes = b"application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Call(NamedTuple):
    """A request, as a route sees it."""

    engine: Engine
    metrics: Metrics
    parts: Mapping[str, str]
    """what the path has in the place of `{name}`"""
    body: Any
    """JSON; None where the route takes none"""
    application: "Application"
    headers: Sequence[tuple[bytes, bytes]] = ()


class Route(NamedTuple):
    """What answers a method and a path."""

    method: str
    path: str
    """such as `/v1/arms/{arm}`"""
    role: Role
    handle: Callable[[Call], Awaitable[Reply]]
    body: bool = False
    """whether it takes JSON"""
    describe_error: Callable[[ServiceError], dict[str, Any]] = error_body
    """the body of an error"""


class Application:
    """An ASGI 3 application over an engine that `open_engine` makes when the server starts."""

    def __init__(self, open_engine: Callable[[], Engine], config: Config, routes: Sequence[Route]) -> None:
        self.config: Config = config
        self.routes: tuple[Route, ...] = tuple(routes)
        self.metrics: Metrics = Metrics()
        self.stopping: bool = False
        self.failure: Exception | None = None
        """why the engine could not be opened, if so"""
        self._open = open_engine
        self._engine: Engine | None = None
        self._split = [(route, tuple(route.path.split("/")[1:])) for route in self.routes]
        self._fixed: dict[str, dict[str, Route]] = {}
        for route in self.routes:
            if "{" not in route.path:
                self._fixed.setdefault(route.path, {})[route.method] = route

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer one request, or follow the server's start and stop."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})

    def authorize(self, role: Role, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Refuse a request without a token of the role, if tokens are set."""
        tokens = self.config.tokens
        if role == "anyone" or not tokens.required:
            return
        given = _token(headers)
        if not any(_is_one_of(given, words) for words in tokens):
            raise ServiceError(
                "unauthorized", "a token is needed: Authorization: Bearer TOKEN, or Ocp-Apim-Subscription-Key: TOKEN."
            )
        if not _is_one_of(given, tokens.admin) and not _is_one_of(given, _of_role(tokens, role)):
            raise ServiceError("forbidden", f"this needs a token of the role {role}.")

    async def _live(
        self, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    self._engine = await asyncio.get_running_loop().run_in_executor(None, self._open)
                except Exception as problem:
                    self.failure = problem
                    await send({"type": "lifespan.startup.failed", "message": str(problem)})
                    return
                await self._engine.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                assert self._engine is not None
                await self._engine.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        began = time.perf_counter()
        route: Route | None = None
        try:
            if not self.config.tokens.required:
                _refuse_other_sites(scope["headers"])
            route, parts = self._find(scope)
            self.authorize(route.role, scope["headers"])
            body = await self._read(scope, receive) if route.body else None
            assert self._engine is not None
            reply = await route.handle(Call(self._engine, self.metrics, parts, body, self, scope["headers"]))
        except ClientGoneError:
            return
        except Exception as problem:
            told = as_service_error(problem)
            if told.code == "fault":
                logging.getLogger("neuralucb").error("a request could not be answered", exc_info=problem)
            describe = error_body if route is None else route.describe_error
            reply = Reply(told.status, orjson.dumps(describe(told)), headers=told.headers)
        self.metrics.count(
            "none" if route is None else f"{route.method} {route.path}", reply.status, time.perf_counter() - began
        )
        await _send(send, reply, head=scope["method"] == "HEAD")

    def _find(self, scope: Message) -> tuple[Route, dict[str, str]]:
        raw = scope.get("raw_path") or scope["path"].encode()
        if len(raw) > LARGEST_PATH:
            raise ServiceError("not_found", f"the path is longer than {LARGEST_PATH} bytes.")
        path = raw.split(b"?")[0].decode("ascii", "replace")
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        found = self._fixed.get(path, {})
        if method in found:
            return found[method], {}
        given, methods = path.split("/")[1:], set(found)
        for route, pieces in self._split:
            if len(pieces) == len(given) and all(
                piece == part or piece[:1] == "{" for piece, part in zip(pieces, given, strict=True)
            ):
                methods.add(route.method)
                if route.method == method:
                    pairs = zip(pieces, given, strict=True)
                    return route, {piece[1:-1]: _decoded(part) for piece, part in pairs if piece[:1] == "{"}
        if methods:
            raise ServiceError(
                "method_not_allowed", f"{path:.80} takes {', '.join(sorted(methods))}, not {method:.20}."
            )
        raise ServiceError("not_found", f"there is no path {path:.80}; /openapi.json lists those that there are.")

    async def _read(self, scope: Message, receive: Callable[[], Awaitable[Message]]) -> Any:
        """The body as JSON: at most so many bytes, in at most so many seconds."""
        limits = self.config.limits
        headers = dict(scope["headers"])
        if not headers.get(b"content-type", b"").lower().startswith((b"application/json", b"text/json")):
            raise ServiceError("unsupported_media_type", "the body must be declared as Content-Type: application/json.")
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > limits.body_bytes:
            raise ServiceError(
                "too_large", f"the body must be at most {limits.body_bytes} bytes, got {length.decode()}."
            )
        try:
            async with asyncio.timeout(limits.seconds):
                data = await _receive(receive, limits.body_bytes)
        except TimeoutError:
            raise ServiceError("timeout", f"the body must arrive within {limits.seconds:g} seconds.") from None
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError as problem:
            raise ServiceError("invalid_json", f"the body must be JSON in UTF-8: {problem}.") from None


class ClientGoneError(Exception):
    """Whoever asked has closed the connection."""


def json_reply(value: Any, status: int = 200) -> Reply:
    """A reply with JSON; NumPy arrays are lists, and what is not finite is null."""
    return Reply(status, orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY))


async def _receive(receive: Callable[[], Awaitable[Message]], most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise ServiceError("too_large", f"the body must be at most {most} bytes.")
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _send(send: Callable[[Message], Awaitable[None]], reply: Reply, *, head: bool) -> None:
    headers = [(b"content-length", str(len(reply.body)).encode()), *reply.headers]
    if reply.body:
        headers.append((b"content-type", reply.kind))
    if reply.status in (204, 304):
        headers = list(reply.headers)
    if reply.status in (408, 413):
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else reply.body})


def _refuse_other_sites(headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Refuse what a page of another site lets a browser on this machine ask: without tokens nothing else stops it.

    Such a page has a name of its own that leads to this machine, which the browser sends as Host, or an Origin.
    """
    given = {name: value.decode("latin-1").lower() for name, value in headers if name in (b"host", b"origin")}
    host, origin = given.get(b"host"), given.get(b"origin")
    if host is not None and not is_local_name(_without_port(host)):
        raise ServiceError("forbidden", f"Host must be localhost or an IP address without tokens, got {host!r:.80}.")
    if origin is not None and origin.partition("://")[2] != host:
        raise ServiceError("forbidden", f"pages of {origin!r:.80} may not ask a service without tokens; set [tokens].")


def _without_port(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # no host at all
        return ""


def _decoded(part: str) -> str:
    """A part of a path; bytes that are not UTF-8 are refused later, as no id has them."""
    return unquote(part, errors="replace")


def _token(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    for name, value in headers:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return value[7:].strip()
        if name == b"ocp-apim-subscription-key":
            return value.strip()
    return b""


def _is_one_of(given: bytes, words: Sequence[str]) -> bool:
    """Compares all of them, so that time tells nothing."""
    found = [hmac.compare_digest(given, word.encode()) for word in words]
    return any(found)


def _of_role(tokens: Tokens, role: Role) -> Sequence[str]:
    return {"decide": tokens.decide, "reward": tokens.reward, "admin": tokens.admin, "read": tokens.read, "anyone": ()}[
        role
    ]
