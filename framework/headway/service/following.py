"""The connections of programs that follow the daemon, on the socket's thread.

None is waited for: what a follower does not read stays in its outbox, which is bounded, and a follower that
has read nothing for :data:`STUCK` seconds although something waits is dropped.
"""

from __future__ import annotations

import contextlib
import math
import selectors
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from headway.service.asked import Asked
from headway.service.outbox import Outbox

#: Seconds between two signs of life, and between two slices of what is told while there is more.
SIGN_OF_LIFE, SLICES = 2.0, 0.1
#: Seconds for which a follower may read nothing of what waits for it.
STUCK = 10.0


@dataclass(eq=False)
class Link:
    """The connection of one follower."""

    connection: socket.socket
    outbox: Outbox
    #: What was taken out of the outbox and is not sent yet.
    left: bytes = b""
    #: When something was sent last, or nothing waited (monotonic clock).
    moved: float = field(default_factory=time.monotonic)


class Following:
    """All connections of followers. Used on one thread."""

    def __init__(self, inbox: Asked, selector: selectors.BaseSelector, log: Any) -> None:
        self._inbox = inbox
        self._selector = selector
        self._log = log
        self._links: set[Link] = set()
        self._next_sign = self._next_slice = -math.inf

    def add(self, connection: socket.socket, outbox: Outbox) -> None:
        """A follower; its connection is not registered with the selector."""
        link = Link(connection, outbox)
        self._links.add(link)
        self._selector.register(connection, selectors.EVENT_READ, link)

    def attend(self, link: Link) -> None:
        """The connection can be read or written."""
        if link not in self._links:
            return
        try:
            if not link.connection.recv(4096):
                self._drop(link, "")
                return
        except BlockingIOError:
            pass
        except OSError:
            self._drop(link, "")
            return
        self._send(link)

    def go_on(self) -> None:
        """Send what can be sent, and have made what is to be told."""
        if not self._links:
            return
        now = time.monotonic()
        if now >= self._next_sign:
            self._next_sign = now + SIGN_OF_LIFE
            report = self._inbox.whole_status()
            for link in self._links:
                if not link.outbox.put_state(report):
                    link.outbox.put(b"\n")
        if now >= self._next_slice and self._inbox.has_more_to_tell:
            self._next_slice = now + SLICES
            self._inbox.go_on_telling()
        for link in list(self._links):
            self._send(link)

    def pause(self) -> float:
        """Seconds until there is something to do even if nothing happens."""
        if not self._links:
            return math.inf
        due = self._next_slice if self._inbox.has_more_to_tell else math.inf
        return max(0.0, min(self._next_sign, due) - time.monotonic())

    def close(self) -> None:
        for link in list(self._links):
            self._drop(link, "")

    def _send(self, link: Link) -> None:
        now = time.monotonic()
        while link.left or not link.outbox.over:
            if not link.left and not (taken := link.outbox.take()):
                link.moved = now
                break
            link.left = link.left or taken
            try:
                sent = link.connection.send(link.left)
            except BlockingIOError:
                break
            except OSError:
                self._drop(link, "")
                return
            link.left, link.moved = link.left[sent:], now
        if link.outbox.over:
            self._drop(link, link.outbox.over)
        elif now - link.moved >= STUCK:
            self._drop(link, f"it has read nothing for {STUCK:g} s")
        else:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.left else 0)
            if self._selector.get_key(link.connection).events != wanted:
                self._selector.modify(link.connection, wanted, link)

    def _drop(self, link: Link, why: str) -> None:
        self._links.discard(link)
        link.outbox.end(why or "it went away")
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(link.connection)
        link.connection.close()
        if why:
            self._log.warning("a program that follows the daemon is dropped", why=why)
