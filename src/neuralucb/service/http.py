"""The application: routes, tokens and errors. What a route does is in `v1.py` and `personalizer.py`."""

import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

import orjson

from neuralucb.service.config import Config, Tokens, is_local_name
from neuralucb.service.engine import Engine
from neuralucb.service.errors import ServiceError, as_service_error, error_body
from neuralucb.service.metrics import Metrics

__all__ = ["Application", "Call", "Incoming", "Reply", "Route", "json_reply"]

Role: TypeAlias = Literal["decide", "reward", "admin", "read", "anyone"]

LARGEST_PATH = 8192
"""Bytes: two ids of 256 characters take up to 12 each when they are quoted."""


class Incoming(NamedTuple):
    """A request as it came."""

    method: str
    target: bytes
    """path and query"""
    headers: Sequence[tuple[bytes, bytes]]
    """names in lower case"""
    body: bytes | ServiceError
    """or why it could not be read"""


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
    """Answers requests with an engine. `start` and `close` are called from the event loop that also asks."""

    def __init__(self, engine: Engine, config: Config, routes: Sequence[Route]) -> None:
        self.config: Config = config
        self.routes: tuple[Route, ...] = tuple(routes)
        self.metrics: Metrics = Metrics()
        self.stopping: bool = False
        self._engine = engine
        self._split = [(route, tuple(route.path.split("/")[1:])) for route in self.routes]
        self._fixed: dict[str, dict[str, Route]] = {}
        for route in self.routes:
            if "{" not in route.path:
                self._fixed.setdefault(route.path, {})[route.method] = route

    async def start(self) -> None:
        """Begin to look after deadlines."""
        await self._engine.start()

    async def close(self) -> None:
        """Finish what was accepted, and close the store."""
        await self._engine.close()

    async def respond(self, request: Incoming) -> Reply:
        """The answer to one request."""
        began = time.perf_counter()
        route: Route | None = None
        try:
            data = request.body
            if isinstance(data, ServiceError):
                raise data
            if not self.config.tokens.required:
                _refuse_other_sites(request.headers)
            route, parts = self._find(request)
            self.authorize(route.role, request.headers)
            body = _read(request.headers, data) if route.body else None
            reply = await route.handle(Call(self._engine, self.metrics, parts, body, self, request.headers))
        except Exception as problem:
            told = as_service_error(problem)
            if told.code == "fault":
                logging.getLogger("neuralucb").error("a request could not be answered", exc_info=problem)
            describe = error_body if route is None else route.describe_error
            reply = Reply(told.status, orjson.dumps(describe(told)), headers=told.headers)
        self.metrics.count(
            "none" if route is None else f"{route.method} {route.path}", reply.status, time.perf_counter() - began
        )
        return reply

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

    def _find(self, request: Incoming) -> tuple[Route, dict[str, str]]:
        if len(request.target) > LARGEST_PATH:
            raise ServiceError("not_found", f"the path is longer than {LARGEST_PATH} bytes.")
        path = request.target.split(b"?")[0].decode("ascii", "replace")
        method = "GET" if request.method == "HEAD" else request.method
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


def json_reply(value: Any, status: int = 200) -> Reply:
    """A reply with JSON; NumPy arrays are lists, and what is not finite is null."""
    return Reply(status, orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY))


def _read(headers: Sequence[tuple[bytes, bytes]], data: bytes) -> Any:
    """The body as JSON."""
    kind = next((value for name, value in headers if name == b"content-type"), b"")
    if not kind.lower().startswith((b"application/json", b"text/json")):
        raise ServiceError("unsupported_media_type", "the body must be declared as Content-Type: application/json.")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as problem:
        raise ServiceError("invalid_json", f"the body must be JSON in UTF-8: {problem}.") from None


def _refuse_other_sites(headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Refuse what a page of another site lets a browser on this machine ask: without tokens nothing else stops it.

    Such a page has a name of its own that leads to this machine, which the browser sends as Host, or an Origin.
    """
    given = {name: value.decode("latin-1").lower() for name, value in headers if name in (b"host", b"origin")}
    host, origin = given.get(b"host"), given.get(b"origin")
    if host is not None and not _is_local(host):
        raise ServiceError("forbidden", f"Host must be localhost or an IP address without tokens, got {host!r:.80}.")
    if origin is not None and origin.partition("://")[2] != host:
        raise ServiceError("forbidden", f"pages of {origin!r:.80} may not ask a service without tokens; set [tokens].")


@lru_cache(maxsize=64)
def _is_local(host: str) -> bool:
    """Whether a host, with or without its port, is this machine's own name for itself or an address."""
    try:
        return is_local_name(urlsplit(f"//{host}").hostname or "")
    except ValueError:  # no host at all
        return False


def _decoded(part: str) -> str:
    """A part of a path; no id has bytes that are not UTF-8."""
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise ServiceError("invalid_request", f"a path must be percent-encoded UTF-8, got {part:.80}.") from None


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
