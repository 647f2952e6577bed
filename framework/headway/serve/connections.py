"""One client's connection: which user it is, how many there may be, and how long a client may take.

uvicorn hands over requests. Who is at the other end of a Unix socket, how many connections a client has, and
slow clients are not its business, so they are looked after here.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from headway.service.server import peer_uid

#: Bytes of a request's line and headers, at most: a plugin's question has 12 KiB of text.
MAX_HEAD = 20 * 1024
#: The key in a request's ``state`` under which the user at the other end stands.
PEER = "peer_uid"


@dataclass
class Room:
    """How many connections there may be, and how long a client may take."""

    #: In all, and of one address or one user on a Unix socket.
    most: int = 1000
    most_each: int = 300
    #: Seconds in which a client sends a whole request.
    patience: float = 10.0
    #: Seconds in which it takes what was written for it.
    reads_within: float = 30.0
    #: Of these, as many as there may be in all: proxies, which have those of many users.
    shared: Callable[[Hashable], bool] = lambda _: False
    _taken: Counter[Hashable] = field(default_factory=Counter, init=False)

    def take(self, peer: Hashable) -> bool:
        """Whether this client may have one more connection; it has it then."""
        if self._taken.total() >= self.most:
            return False
        if self._taken[peer] >= self.most_each and not self.shared(peer):
            return False
        self._taken[peer] += 1
        return True

    def leave(self, peer: Hashable) -> None:
        self._taken[peer] -= 1
        if self._taken[peer] <= 0:
            del self._taken[peer]


def connections_in(room: Room) -> type[asyncio.Protocol]:
    """The class of connections that share a room, for uvicorn's ``http``."""

    class Connection(_Connection):
        _room = room

    return Connection


class _Connection(H11Protocol):
    _room: Room
    #: The client; None: it found no room.
    _peer: Hashable | None = None
    _receiving: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        try:
            peer = self._client_of(transport)
        except OSError:
            # It is gone already.
            transport.abort()
            return
        if not self._room.take(peer):
            transport.write(_BUSY)
            transport.close()
            self._sending = self.loop.call_later(self._room.reads_within, transport.abort)
            return
        self._peer = peer
        self._wait()

    def _client_of(self, transport: asyncio.Transport) -> Hashable:
        connection: socket.socket = transport.get_extra_info("socket")
        if connection.family != socket.AF_UNIX:
            return self.client[0] if self.client else ""
        # asyncio hands out the socket in a wrapper with the same methods.
        uid = peer_uid(connection)
        self.app_state = {**self.app_state, PEER: uid}
        return uid

    def connection_lost(self, exc: Exception | None) -> None:
        if self._peer is not None:
            self._room.leave(self._peer)
            self._peer = None
        self._stop(self._receiving)
        self._stop(self._sending)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._peer is None:
            return
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait()
        else:
            self._stop(self._receiving)
            self._receiving = None

    def _wait(self) -> None:
        """From the first byte on, so that a byte now and then wins no time."""
        if self._receiving is None:
            self._receiving = self.loop.call_later(self._room.patience, self._too_slow)

    def _too_slow(self) -> None:
        self._receiving = None
        self.transport.abort()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._leave_soon()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._leave_soon()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop(self._sending)
            self._sending = None

    def _leave_soon(self) -> None:
        """What waits for the client to read it does not wait for ever."""
        if self._sending is None:
            self._sending = self.loop.call_later(self._room.reads_within, self.transport.abort)

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


def peer_of(scope: Any) -> int | None:
    """The user id at the other end of a Unix socket; None: it is none."""
    uid = scope.get("state", {}).get(PEER)
    return uid if isinstance(uid, int) else None


_TEXT = b'{"title":"Busy","status":503,"detail":"too many connections; try again"}'
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nConnection: close\r\n"
    b"Retry-After: 1\r\nContent-Length: %d\r\n\r\n%b" % (len(_TEXT), _TEXT)
)
