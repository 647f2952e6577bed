"""What is on its way to one program that follows the daemon: bounded, between two threads."""

from __future__ import annotations

import threading
from collections import deque

from headway.service.changes import State, write_change
from headway.service.protocol import Report

#: Bytes that wait: at so many, no more is written than what cannot wait; at so many, the follower is dropped.
FULL, OVERFULL = 2 * 1024 * 1024, 16 * 1024 * 1024


class Outbox:
    """Lines for one follower: the scheduler's thread puts them in, the socket's thread takes them out."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._size = 0
        self._state: Report | None = None
        #: Why the follower gets no more; "": it does.
        self.over = ""

    @property
    def is_full(self) -> bool:
        return self._size >= FULL

    def put(self, line: bytes) -> None:
        with self._lock:
            self._lines.append(line)
            self._size += len(line)
            if self._size >= OVERFULL:
                self.end(f"it reads too slowly: {self._size} bytes wait")

    def put_state(self, report: Report) -> bool:
        """How the daemon is, if that is not known yet; whether it was put in."""
        with self._lock:
            known, self._state = self._state == report, report
        if not known:
            self.put(write_change(State(report)))
        return not known

    def take(self) -> bytes:
        """Some of what waits; b"": nothing does."""
        with self._lock:
            taken: list[bytes] = []
            size = 0
            while self._lines and size < 65536:
                taken.append(self._lines.popleft())
                size += len(taken[-1])
            self._size -= size
        return b"".join(taken)

    def end(self, why: str) -> None:
        """The follower gets no more."""
        self.over = self.over or why
