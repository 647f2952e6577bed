"""What happens, as it happens: server-sent events, which a client resumes by their number."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from headway.errors import Failure
from headway.serve.asking import Gatekeeper, known
from headway.serve.problems import problem
from headway.serve.source import Caller

#: Seconds between two signs of life, and between two looks whether the user may still read.
ALIVE = 15.0


class Item(Protocol):
    """Something that happened."""

    @property
    def number(self) -> int:
        """Its number, by which a client says how far it has read."""
        ...

    @property
    def kind(self) -> str:
        """Such as "cycle", "decision", "event", "jobs", "daemon"."""
        ...

    @property
    def data(self) -> Any:
        """What msgspec writes as JSON."""
        ...


@runtime_checkable
class Streams(Protocol):
    """Where items come from."""

    def stream(self, caller: Caller, after: int | None) -> AsyncIterator[Item]:
        """The items that the user may know, behind the number ``after``; None: from now on. It ends when its
        reader is too slow; :class:`Failure` if there is none."""
        ...


@dataclass
class Seats:
    """How many streams there may be, in all and of one user, and until when."""

    most: int = 500
    most_each: int = 50
    #: Set when the process is to end, and all streams with it.
    over: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _taken: Counter[str] = field(default_factory=Counter, init=False)

    def take(self, user: str) -> bool:
        if self._taken.total() >= self.most or self._taken[user] >= self.most_each:
            return False
        self._taken[user] += 1
        return True

    def leave(self, user: str) -> None:
        self._taken[user] -= 1
        if not self._taken[user]:
            del self._taken[user]


def streamer(
    streams: Streams, gatekeeper: Gatekeeper, seats: Seats, alive: float = ALIVE
) -> Callable[[Request], Awaitable[Response]]:
    """What serves the stream."""

    async def serve(request: Request) -> Response:
        caller = await known(gatekeeper, request, "read")
        if isinstance(caller, Response):
            return caller
        last = request.headers.get("last-event-id") or request.query_params.get("after")
        if last is not None and not re.fullmatch("[0-9]{1,15}", last):
            return problem(400, "expected the number of an event (Last-Event-ID, after)")
        if not seats.take(caller.user):
            return problem(429, "too many streams of changes; close one and try again")
        after = int(last) if last is not None else None

        async def still() -> bool:
            return await gatekeeper.caller(request) == caller

        text = _text(streams.stream(caller, after), still, alive, seats.over)
        return _Stream(text, lambda: seats.leave(caller.user))

    return serve


class _Stream(StreamingResponse):
    """Gives the seat back when it is over, also if it never began."""

    media_type = "text/event-stream"

    def __init__(self, text: AsyncIterator[bytes], leave: Callable[[], None]) -> None:
        super().__init__(text, headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        self._leave = leave

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


async def _text(
    items: AsyncIterator[Item], still: Callable[[], Awaitable[bool]], alive: float, over: asyncio.Event
) -> AsyncIterator[bytes]:
    """The events as text, with a comment as a sign of life; the end when the user may not read any more, or
    all is ``over``."""
    clock = asyncio.get_running_loop().time
    looked = clock()
    coming: asyncio.Future[Item] | None = None
    ending = asyncio.ensure_future(over.wait())
    try:
        yield b": headway\n\n"
        while not over.is_set():
            if coming is None:
                coming = asyncio.ensure_future(_next(items))
            either: set[asyncio.Future[Any]] = {coming, ending}
            patience = max(0.0, looked + alive - clock())
            await asyncio.wait(either, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if clock() >= looked + alive:
                looked = clock()
                if not await still():
                    return
                yield b": alive\n\n"
            if not coming.done():
                continue
            try:
                item = coming.result()
            except StopAsyncIteration:
                return
            except Failure as error:
                yield event("failed", {"detail": str(error)})
                return
            coming = None
            yield event(item.kind, item.data, item.number)
    finally:
        ending.cancel()
        if coming is not None:
            coming.cancel()
            await asyncio.wait({coming})
        if (close := getattr(items, "aclose", None)) is not None:
            await close()


async def _next(items: AsyncIterator[Item]) -> Item:
    return await anext(items)


def event(kind: str, data: Any, number: int | None = None) -> bytes:
    """An event as text. JSON has no bare line feed, so that its data is one line."""
    head = b"" if number is None else b"id: %d\n" % number
    return head + b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"
