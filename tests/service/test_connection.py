"""HTTP over a socket: requests in pieces, in a row, too large and too slow."""

import asyncio

import pytest

from neuralucb.service.config import Limits
from neuralucb.service.connection import Connection
from neuralucb.service.errors import ServiceError, error_body
from neuralucb.service.http import json_reply

LIMITS = Limits(body_bytes=1000, seconds=0.3, connections=2)
POST = b"POST /echo HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b"


async def echo(request):
    """What was asked, in JSON; an answer to /slow takes its time."""
    if isinstance(request.body, ServiceError):
        return json_reply(error_body(request.body), request.body.status)
    if request.target == b"/slow":
        await asyncio.sleep(0.05)
    return json_reply([request.method, request.target.decode(), request.body.decode()])


def talk(*pieces, pause=0.0, others=0, end=False, seconds=LIMITS.seconds):
    """All that is answered to pieces that are sent one after the other, until the connection is closed or idle."""
    limits = LIMITS._replace(seconds=seconds)

    async def run():
        loop, connections = asyncio.get_running_loop(), set()
        server = await loop.create_server(lambda: Connection(echo, limits, connections), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        async def watch():
            while True:
                await asyncio.sleep(0.02)
                for each in list(connections):
                    each.expire(loop.time())

        watcher = asyncio.create_task(watch())
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(others + 1)]
        reader, writer = opened[-1]
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        if end:
            for each in list(connections):
                each.end()
        data, closed = b"", False
        try:
            while not closed:
                part = await asyncio.wait_for(reader.read(65536), 0.6)
                data, closed = data + part, part == b""
        except TimeoutError:
            pass
        watcher.cancel()
        for _, each in opened:
            each.close()
        server.close()
        for each in list(connections):
            each.end()
        await asyncio.sleep(0.05)
        return data, closed

    return asyncio.run(run())


def test_pipelined_requests_are_answered_in_their_order_and_the_connection_is_kept():
    data, closed = talk(b"GET /slow HTTP/1.1\r\n\r\n" + POST % (1, b"a") + POST % (1, b"b"))
    places = [data.index(part) for part in (b'["GET","/slow",""]', b'["POST","/echo","a"]', b'["POST","/echo","b"]')]
    assert places == sorted(places)
    assert data.count(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ") == 3
    assert not closed


def test_a_request_may_come_in_pieces_and_in_chunks():
    head, body = (POST % (4, b"abcd")).split(b"\r\n\r\n")
    assert b'"abcd"' in talk(head[:9], head[9:] + b"\r\n", b"\r\n" + body[:1], body[1:], pause=0.02, seconds=30)[0]
    chunked = b"POST /echo HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"
    assert b'["POST","/echo","abcd"]' in talk(chunked)[0]


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /echo HTTP/1.1\r\ncontent-length: 1001\r\n\r\n",
        b"POST /echo HTTP/1.1\r\ncontent-length: " + b"9" * 40 + b"\r\n\r\n",
        b"POST /echo HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n" + 3 * (b"190\r\n" + b"a" * 400 + b"\r\n"),
    ],
)  # fmt: skip
def test_a_body_that_is_too_large_is_refused_before_it_has_come(sent):
    data, closed = talk(sent)
    assert data.startswith((b"HTTP/1.1 413", b"HTTP/1.1 400"))
    assert b"connection: close" in data
    assert closed


def test_what_is_no_http_is_refused_and_an_endless_head_too():
    for sent in (b"hello\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000):
        data, closed = talk(sent)
        assert data.startswith(b"HTTP/1.1 400")
        assert data.count(b"HTTP/1.1") == 1
        assert closed


def test_a_client_that_takes_too_long_is_cut_off_with_408_once_its_body_is_awaited():
    assert talk(b"", pause=0.01) == (b"", True)
    assert talk(b"POST /ec") == (b"", True)
    data, closed = talk(POST % (4, b"a"))
    assert data.startswith(b"HTTP/1.1 408 ")
    assert closed
    assert not talk(POST % (1, b"a"))[1]  # it is complete, and the connection waits for another


def test_heads_have_no_body_and_old_clients_no_second_answer():
    data, _ = talk(b"HEAD /echo HTTP/1.1\r\n\r\n")
    assert data.endswith(b"content-length: 19\r\n\r\n")
    data, closed = talk(b"GET /echo HTTP/1.0\r\n\r\n")
    assert b"connection: close" in data
    assert closed


def test_a_client_that_asks_whether_to_go_on_is_told_to():
    head = b"POST /echo HTTP/1.1\r\ncontent-length: 1\r\nexpect: 100-continue\r\n\r\n"
    data, _ = talk(head, b"a", pause=0.02, seconds=30)
    assert data.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_more_connections_than_allowed_are_told_so():
    assert talk(POST % (1, b"a"), others=1)[0].startswith(b"HTTP/1.1 200")
    data, closed = talk(POST % (1, b"a"), others=2)
    assert data.startswith(b"HTTP/1.1 503")
    assert closed


def test_at_the_end_what_was_asked_is_answered_and_idle_connections_are_closed():
    data, closed = talk(b"GET /slow HTTP/1.1\r\n\r\n", pause=0.02, end=True)
    assert b"200 OK" in data
    assert b"connection: close" in data
    assert closed
    assert talk(b"", pause=0.02, end=True) == (b"", True)
