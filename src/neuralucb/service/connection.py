"""HTTP/1.1 over a socket: requests are read, and answered one after the other; who is too slow is cut off.

httptools parses. What a request means and what is answered is in `http.py`.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from functools import lru_cache
from http import HTTPStatus
from typing import cast

import httptools

from neuralucb.service.config import Limits
from neuralucb.service.errors import ServiceError
from neuralucb.service.http import Incoming, Reply

__all__ = ["Connection"]

KEEP_ALIVE_SECONDS = 65.0
"""For a connection without requests: longer than load balancers keep theirs, so that they close first."""

LINGER_SECONDS = 1.0
"""For a client to read why it was refused."""

LARGEST_HEAD = 65_536
"""Bytes of a request before its body."""


class Connection(asyncio.Protocol):
    """One client. Pipelined requests wait for those before them; nothing is read meanwhile.

    respond      answers a request
    connections  all there are; with more than the limit each request of a new one is refused
    """

    def __init__(
        self, respond: Callable[[Incoming], Awaitable[Reply]], limits: Limits, connections: "set[Connection]"
    ) -> None:
        self._respond, self._limits, self._connections = respond, limits, connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._complete: deque[tuple[Incoming, bool]] = deque()
        """requests that wait for their answer, and whether the connection is kept after it"""
        self._task: asyncio.Task[None] | None = None
        """that answers the request under way"""
        self._deadline = self._loop.time() + limits.seconds
        self._in_body = self._is_deaf = self._is_choked = self._is_ending = False
        self._url, self._headers, self._body, self._size = b"", list[tuple[bytes, bytes]](), list[bytes](), 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop has its own, which are no subclass
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End; what was asked for is still done."""
        self._connections.discard(self)
        self._complete.clear()
        self._deadline = math.inf

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self._is_deaf:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # to what we do not speak: the request itself is answered
            self._is_deaf = self._is_ending = True
        except httptools.HttpParserError:
            self._refuse(ServiceError("invalid_request", "this is no HTTP request."))

    def pause_writing(self) -> None:
        """The client does not read its answers."""
        self._is_choked = True

    def resume_writing(self) -> None:
        """It does again."""
        self._is_choked = False
        if self._task is None:
            self._go_on()

    def on_message_begin(self) -> None:
        """The parser found the first byte of a request."""
        self._url, self._headers, self._body, self._size, self._in_body = b"", [], [], 0, False
        self._deadline = self._loop.time() + self._limits.seconds

    def on_url(self, url: bytes) -> None:
        """Its path, or a part."""
        self._url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._headers.append((name.lower(), value))
        self._count_head(len(name) + len(value) + len(": \r\n"))

    def on_headers_complete(self) -> None:
        """The body follows."""
        self._size, self._in_body = 0, True
        self._deadline = self._loop.time() + self._limits.seconds
        for name, value in self._headers:
            if name == b"content-length" and int(value[:20]) > self._limits.body_bytes:
                self._refuse_size(f", got {value.decode()}")
            if name == b"expect" and value.lower() == b"100-continue" and self._task is None and not self._is_deaf:
                self._write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, part: bytes) -> None:
        """A part of the body."""
        self._size += len(part)
        self._body.append(part)
        if self._size > self._limits.body_bytes:
            self._refuse_size("")

    def on_message_complete(self) -> None:
        """The request is complete."""
        if not self._is_deaf:
            self._ask(b"".join(self._body), keep=self._parser.should_keep_alive())

    def expire(self, now: float) -> None:
        """Cut off a client that takes too long, or has nothing to ask."""
        if now < self._deadline or self._transport is None:
            return
        if self._in_body and not self._is_deaf:
            words = f"the body must arrive within {self._limits.seconds:g} seconds."
            self._refuse(ServiceError("timeout", words))
        else:
            self._transport.close()

    def end(self) -> None:
        """Close the connection, after the answer under way if there is one."""
        self._is_ending = True
        if self._task is None and self._transport is not None:
            self._transport.close()

    def _count_head(self, size: int) -> None:
        self._size += size
        if self._size > LARGEST_HEAD:
            self._refuse(ServiceError("invalid_request", f"path and headers must be below {LARGEST_HEAD} bytes."))

    def _refuse_size(self, got: str) -> None:
        words = f"the body must be at most {self._limits.body_bytes} bytes{got}."
        self._refuse(ServiceError("too_large", words))

    def _refuse(self, problem: ServiceError) -> None:
        """Answer an error, and read no more."""
        if not self._is_deaf:
            self._is_deaf = True
            self._ask(problem, keep=False)

    def _ask(self, body: bytes | ServiceError, *, keep: bool) -> None:
        self._deadline, self._in_body = math.inf, False
        if len(self._connections) > self._limits.connections and not isinstance(body, ServiceError):
            words = f"there are more than {self._limits.connections} connections; try again later."
            body, keep = ServiceError("unavailable", words), False
        method = b"" if not self._headers and not self._url else self._parser.get_method()
        self._complete.append((Incoming(method.decode(), self._url, self._headers, body), keep))
        if self._task is None:
            self._next()
        elif self._transport is not None:
            self._transport.pause_reading()

    def _next(self) -> None:
        request, keep = self._complete.popleft()
        self._task = self._loop.create_task(self._answer(request, keep=keep))

    async def _answer(self, request: Incoming, *, keep: bool) -> None:
        reply = await self._respond(request)
        self._task = None
        if self._transport is None or self._transport.is_closing():
            return
        ends = not keep or self._is_ending
        length = b"" if reply.status in (204, 304) else b"content-length: %d\r\n" % len(reply.body)
        head = _head(reply.status, reply.kind if reply.body else b"", reply.headers, ends=ends)
        self._write(head + length + b"\r\n" + (b"" if request.method == "HEAD" else reply.body))
        if self._is_deaf:  # closing at once would reset the connection where more has come, and the answer be lost
            self._transport.write_eof()
            self._transport.resume_reading()
            self._deadline = self._loop.time() + LINGER_SECONDS
        elif ends:
            self._transport.close()
        elif not self._is_choked:
            self._go_on()

    def _go_on(self) -> None:
        """The next request, or wait for one."""
        if self._complete:
            self._next()
        elif self._transport is not None and not self._transport.is_closing():
            if self._deadline == math.inf:  # else the next one has begun to come
                self._deadline = self._loop.time() + KEEP_ALIVE_SECONDS
            self._transport.resume_reading()

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)


@lru_cache(maxsize=256)
def _head(status: int, kind: bytes, headers: tuple[tuple[bytes, bytes], ...], *, ends: bool) -> bytes:
    """All of a head but the length."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
    lines += [b"content-type: " + kind] if kind else []
    lines += [name + b": " + value for name, value in headers]
    lines += [b"connection: close"] if ends else []
    return b"\r\n".join(lines) + b"\r\n"
