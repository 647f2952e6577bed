"""A service manager: the end of the socket at which the words of a daemon arrive."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path
from types import TracebackType

from waiting import HANG


class Manager:
    """Listens at a path, or at an abstract name of its own."""

    def __init__(self, path: Path | None = None) -> None:
        abstract = f"headway-test-{os.getpid()}-{secrets.token_hex(4)}"
        #: For ``NOTIFY_SOCKET``.
        self.address = str(path) if path is not None else f"@{abstract}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path) if path is not None else f"\0{abstract}")
        self._socket.settimeout(HANG)

    def __enter__(self) -> Manager:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._socket.close()

    def message(self) -> dict[str, str]:
        """The next message."""
        lines = self._socket.recv(4096).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def until(self, word: str) -> list[dict[str, str]]:
        """The messages up to the first that has the word, which is the last of them."""
        found = [self.message()]
        while word not in found[-1]:
            found.append(self.message())
        return found

    def is_silent(self) -> bool:
        """Whether nothing is there."""
        self._socket.setblocking(False)
        try:
            self._socket.recv(4096)
        except BlockingIOError:
            return True
        finally:
            self._socket.settimeout(HANG)
        return False
