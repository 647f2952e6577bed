"""One side of a connection: numbered messages with an HMAC."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import socket
import time
from typing import Any

import msgspec

from headway.errors import Failure

#: Bytes of one message.
LONGEST = 4_000_000
_DAEMON, _AGENT = b"daemon", b"agent"
VERSION = 1


class Refused(Failure):
    """The other side does not know the key, or the received data is no message of this connection."""


class _Frame(msgspec.Struct, frozen=True):
    number: int
    text: str
    mac: str


class _Greeting(msgspec.Struct, frozen=True):
    version: int
    random: str


class Channel:
    """Messages in both directions. Not for several threads at once."""

    def __init__(self, connection: socket.socket, key: bytes, *, agent: bool) -> None:
        """``agent``: this is the agent's side, which greets first. The socket's time-out holds for each wait;
        the whole greeting has that time, too. Raises :class:`Refused`, :class:`Failure` and OSError."""
        self._connection = connection
        self._buffer = b""
        self._sent = self._received = 0
        self._here, self._there = (_AGENT, _DAEMON) if agent else (_DAEMON, _AGENT)
        mine = secrets.token_hex(32)
        greeting = msgspec.json.encode(_Greeting(VERSION, mine))
        if agent:
            self._write(greeting)
            theirs = self._greeted()
            both = f"{mine} {theirs}"
        else:
            theirs = self._greeted()
            self._write(greeting)
            both = f"{theirs} {mine}"
        self._key = hmac.new(key, f"headway {VERSION} {both}".encode(), hashlib.sha256).digest()
        # Each side shows that it has the key before anything is asked or told.
        if agent:
            self._proved()
            self.send("headway")
        else:
            self.send("headway")
            self._proved()

    def _greeted(self) -> str:
        try:
            greeting = msgspec.json.decode(self._line(), type=_Greeting)
        except msgspec.DecodeError as error:
            raise Refused("the peer does not speak this protocol") from error
        if greeting.version != VERSION or len(greeting.random) != 64:
            raise Refused(f"expected version {VERSION} of the protocol, found {greeting.version}")
        return greeting.random

    def _proved(self) -> None:
        if self.receive() != "headway":
            raise Refused("expected the word that begins a connection")

    def send(self, message: Any) -> None:
        """Send one message: JSON values."""
        text = msgspec.json.encode(message).decode()
        self._sent += 1
        mac = self._mac(self._here, self._sent, text)
        self._write(msgspec.json.encode(_Frame(self._sent, text, mac)))

    def receive(self) -> Any:
        """The next message. Raises :class:`Refused` for a message that is forged, repeated or out of turn."""
        line = self._line()
        try:
            frame = msgspec.json.decode(line, type=_Frame)
        except msgspec.DecodeError as error:
            raise Refused("the received data is no message") from error
        expected = self._mac(self._there, frame.number, frame.text)
        if not hmac.compare_digest(expected, frame.mac):
            raise Refused("a message was not made with the site's key for this connection")
        if frame.number != self._received + 1:
            raise Refused(
                f"expected message {self._received + 1}, found {frame.number}: a message was lost or repeated"
            )
        self._received = frame.number
        try:
            return msgspec.json.decode(frame.text)
        except msgspec.DecodeError as error:
            raise Refused("the received data is no message") from error

    def _mac(self, side: bytes, number: int, text: str) -> str:
        said = side + b" %d " % number + text.encode()
        return hmac.new(self._key, said, hashlib.sha256).hexdigest()

    def _write(self, line: bytes) -> None:
        self._connection.sendall(line + b"\n")

    def _line(self) -> bytes:
        limit = self._connection.gettimeout()
        end = None if limit is None else time.monotonic() + limit
        while b"\n" not in self._buffer:
            if len(self._buffer) > LONGEST:
                raise Refused(f"expected a message of at most {LONGEST} bytes")
            if end is not None and time.monotonic() > end:
                raise TimeoutError("a message took too long")
            part = self._connection.recv(65536)
            if not part:
                raise Failure("the connection was closed")
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.close()


def connect(address: str, seconds: float) -> socket.socket:
    """A connection to ``unix:PATH`` or ``HOST:PORT``. Raises OSError."""
    if address.startswith("unix:"):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.settimeout(seconds)
        try:
            made.connect(address.removeprefix("unix:"))
        except OSError:
            made.close()
            raise
        return made
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=seconds)
