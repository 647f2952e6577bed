"""Connections: slow, silent and many clients take nothing from others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from waiting import HANG

from headway.serve.addresses import Address, bound
from headway.serve.connections import MAX_HEAD, Room, peer_of
from headway.serve.running import Server, configured

pytestmark = pytest.mark.waits
HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
WHOLE = HEAD + b"\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
LARGE = 32 * 1024 * 1024


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Says how many bytes it was sent; ``/large`` says much more; ``/peer`` tells the other end."""
    request = Request(scope, receive)
    if scope["path"] == "/large":
        answer = PlainTextResponse("x" * LARGE)
    elif scope["path"] == "/peer":
        answer = PlainTextResponse(str(peer_of(scope)))
    else:
        answer = PlainTextResponse(str(len(await request.body())))
    await answer(scope, receive, send)


Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Client]]


@asynccontextmanager
async def serving(room: Room, path: Path | None = None) -> AsyncIterator[Connect]:
    """A server with this room; yields what connects to it."""
    address = Address(path=path) if path is not None else Address("127.0.0.1", 0)
    listener = bound(address, 0o666)
    where = listener.getsockname()
    server = Server(configured(app, room, None))
    task = asyncio.ensure_future(server.serve([listener]))
    clients: list[asyncio.StreamWriter] = []

    async def connect() -> Client:
        if path is not None:
            client = await asyncio.open_unix_connection(str(path))
        else:
            client = await asyncio.open_connection(*where, limit=4096)
        clients.append(client[1])
        return client

    try:
        yield connect
    finally:
        for client in clients:
            client.close()
        server.should_exit = True
        await task


def run(what: Callable[[Connect], Awaitable[None]], room: Room, path: Path | None = None) -> None:
    async def all_of() -> None:
        async with asyncio.timeout(HANG), serving(room, path) as connect:
            await what(connect)
        assert room._taken.total() == 0

    asyncio.run(all_of())


async def ended(client: Client) -> bytes:
    """What comes until the other end closes."""
    try:
        return await client[0].read()
    except ConnectionError:
        return b""


async def answered(client: Client, request: bytes = WHOLE) -> bytes:
    """The line of the answer's status."""
    client[1].write(request)
    await client[1].drain()
    return await client[0].readline()


@pytest.mark.parametrize(
    "said",
    [b"", b"G", HEAD, b"X-A: b\r\n" * 3, POST, POST + b"123", WHOLE[:-2]],
    ids=["silent", "a letter", "half a head", "no line", "no body", "half a body", "no end"],
)
def test_a_client_that_does_not_end_its_request_is_closed(said: bytes) -> None:
    async def one(connect: Connect) -> None:
        client = await connect()
        client[1].write(said)
        await ended(client)

    run(one, Room(patience=0.2))


def test_a_byte_now_and_then_wins_no_time() -> None:
    async def one(connect: Connect) -> None:
        client = await connect()
        client[1].write(HEAD)

        async def drip() -> None:
            while True:
                client[1].write(b"X-A: b\r\n")
                await client[1].drain()
                await asyncio.sleep(0.02)

        dripping = asyncio.ensure_future(drip())
        await ended(client)
        dripping.cancel()

    run(one, Room(patience=0.3))


def test_a_slow_client_takes_no_time_from_another() -> None:
    async def both(connect: Connect) -> None:
        slow = await connect()
        slow[1].write(POST)
        for _ in range(3):
            quick = await connect()
            assert b"200" in await answered(quick)

    run(both, Room(patience=HANG))


def test_a_second_request_has_the_whole_time_again() -> None:
    async def one(connect: Connect) -> None:
        client = await connect()
        for _ in range(2):
            assert b"200" in await answered(client, POST + b"1234567890")
            while (await client[0].readline()).strip():
                pass
            assert await client[0].readexactly(2) == b"10"

    run(one, Room(patience=HANG))


def test_a_client_that_does_not_read_is_closed() -> None:
    async def one(connect: Connect) -> None:
        client = await connect()
        client[1].write(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client[1].transport.pause_reading()  # type: ignore[attr-defined]
        while room._taken:
            await asyncio.sleep(0.02)

    room = Room(reads_within=0.3)
    run(one, room)


def test_connections_are_counted_in_all_and_of_each(tmp_path: Path) -> None:
    async def many(connect: Connect) -> None:
        first = [await connect() for _ in range(3)]
        assert all([b"200" in await answered(one) for one in first])
        assert b"503" in await ended(await connect())
        first[0][1].close()
        while room._taken.total() == 3:
            await asyncio.sleep(0.01)
        assert b"200" in await answered(await connect())

    room = Room(most_each=3)
    run(many, room)
    room = Room(most=3)
    run(many, room, tmp_path / "sock")


def test_a_proxy_has_as_many_as_there_are() -> None:
    async def many(connect: Connect) -> None:
        for _ in range(5):
            assert b"200" in await answered(await connect())

    run(many, Room(most_each=1, shared=lambda peer: peer == "127.0.0.1"))


def test_a_thousand_silent_connections_leave_the_server_to_others() -> None:
    async def many(connect: Connect) -> None:
        silent = [await connect() for _ in range(400)]
        while room._taken.total() < 300:
            await asyncio.sleep(0.01)
        assert b"503" in await ended(silent[-1])
        assert room._taken.total() <= 300
        silent[0][1].close()
        while room._taken.total() == 300:
            await asyncio.sleep(0.01)
        assert b"200" in await answered(await connect())

    room = Room(most=300, most_each=300, patience=HANG)
    run(many, room)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"GET / HTTP/1.1\r\nX-A: " + b"a" * (MAX_HEAD + 100) + b"\r\n\r\n", b"400"),
        (b"GET /" + b"a" * (MAX_HEAD + 100), b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: x\r\n\r\n", b"501"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX-A: a\x00b\r\n\r\n", b"400"),
    ],
    ids=["head", "path", "tls", "two lengths", "encoding", "no host", "zero"],
)
def test_what_is_no_http_is_refused(said: bytes, code: bytes) -> None:
    async def one(connect: Connect) -> None:
        client = await connect()
        client[1].write(said)
        found = await ended(client)
        # A large head that was not read to its end: the answer may be lost.
        assert found == b"" or found.split()[1] in (code, b"400")

    run(one, Room())


def test_the_other_end_of_a_unix_socket_is_known_and_of_a_port_is_not(tmp_path: Path) -> None:
    import os

    async def peer(connect: Connect) -> None:
        client = await connect()
        client[1].write(b"GET /peer HTTP/1.0\r\nHost: localhost\r\nX-Peer-Uid: 7\r\n\r\n")
        found.append((await ended(client)).rpartition(b"\r\n")[2])

    found: list[bytes] = []
    run(peer, Room(), tmp_path / "sock")
    run(peer, Room())
    assert found == [b"%d" % os.geteuid(), b"None"]


def test_a_client_that_goes_away_at_once_does_no_harm() -> None:
    async def many(connect: Connect) -> None:
        for _ in range(20):
            _, writer = await connect()
            # With a reset instead of an end.
            raw: socket.socket = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            writer.write(WHOLE)
            writer.transport.abort()
        assert b"200" in await answered(await connect())

    run(many, Room())
