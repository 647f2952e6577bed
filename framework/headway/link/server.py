"""The side of a link that listens: a socket, and a thread a connection."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headway.errors import Failure, UserError
from headway.link.channel import Channel, Refused

#: Connections at once to an agent: the daemon has one.
_MOST = 8
#: How long a client may take to show that it has the key, seconds.
_GREETING_SECONDS = 5.0


class Server:
    """Answers messages until closed. A context manager."""

    def __init__(
        self,
        address: str,
        key: bytes,
        answer: Callable[[Any], Any],
        *,
        idle: float = 600.0,
        most: int = _MOST,
        note: Callable[[str], None],
    ) -> None:
        """``address``: ``unix:PATH`` or ``HOST:PORT`` (port 0: any). ``answer`` is called by one thread at a
        time.
        ``idle``: seconds after which a silent connection is closed. ``most``: connections at once; further
        ones are closed. Raises :class:`UserError`."""
        self._key = key
        self._answer = answer
        self._idle = idle
        self._most = most
        self._note = note
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(most)
        self._closed = False
        self._open: set[socket.socket] = set()
        self._path: Path | None = None
        self._socket = self._listen(address)
        self.address = address
        if self._path is None:
            host, port = self._socket.getsockname()[:2]
            self.address = f"{host}:{port}"
        self._thread = threading.Thread(target=self._accept, name="agent-link", daemon=True)

    def _listen(self, address: str) -> socket.socket:
        try:
            if address.startswith("unix:"):
                path = self._path = Path(address.removeprefix("unix:"))
                with contextlib.suppress(FileNotFoundError):
                    if stat.S_ISSOCK(path.lstat().st_mode):
                        path.unlink()
                made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                before = os.umask(0o177)
                try:
                    made.bind(str(path))
                finally:
                    os.umask(before)
                made.listen(self._most)
                return made
            host, _, port = address.rpartition(":")
            return socket.create_server((host.strip("[]"), int(port)), backlog=self._most)
        except (OSError, ValueError) as error:
            raise UserError(f"--listen {address}: cannot listen there: {error}") from error

    def start(self) -> None:
        self._thread.start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            if not self._room.acquire(blocking=False):
                connection.close()
                continue
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(_GREETING_SECONDS)
            channel = Channel(connection, self._key, agent=True)
            connection.settimeout(self._idle)
            while not self._closed:
                message = channel.receive()
                with self._lock:
                    answer = self._answer(message)
                channel.send(answer)
        except Refused as error:
            self._note(f"refused a connection: {error}")
        except (Failure, OSError):
            pass
        finally:
            self._open.discard(connection)
            connection.close()
            self._room.release()

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def is_local(address: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False
