"""Where the interface listens: ``HOST:PORT``, ``[IPv6]:PORT`` or ``unix:/PATH``."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass
from pathlib import Path

from headway.errors import Failure, UserError
from headway.service.listening import listen_at

#: Connections that wait to be taken.
BACKLOG = 512


@dataclass(frozen=True)
class Address:
    """An address to listen at: a path, or a host and a port."""

    host: str = ""
    port: int = 0
    #: Of a Unix socket.
    path: Path | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it, by TCP."""
        if self.path is not None:
            return False
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_far(self) -> bool:
        """Whether other machines reach it."""
        return self.path is None and not self.is_loopback

    def __str__(self) -> str:
        if self.path is not None:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address_of(text: str) -> Address:
    """An address of ``serve.listen``; :class:`UserError` says what is wrong with it."""
    if text.startswith("unix:"):
        path = Path(text.removeprefix("unix:"))
        if not path.is_absolute():
            raise UserError(f"serve.listen: expected unix: and a whole path, found {text!r}")
        return Address(path=path)
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})", text)
    if found is None or int(found[3]) > 65535:
        raise UserError(
            "serve.listen: expected HOST:PORT, [IPv6]:PORT or unix:/PATH (such as 127.0.0.1:8642), found "
            f"{text!r}"
        )
    return Address(found[1] or found[2], int(found[3]))


def bound(address: Address, mode: int) -> socket.socket:
    """A socket that listens there; ``mode``: of a Unix socket's file. :class:`Failure` if it cannot."""
    where = f"serve.listen: {address}"
    if address.path is not None:
        return listen_at(address.path, where, "another process listens there", mode=mode, backlog=BACKLOG)
    try:
        return _bound_port(address)
    except OSError as error:
        raise Failure(f"{where}: cannot be bound: {error.strerror or error}") from error


def _bound_port(address: Address) -> socket.socket:
    family, kind, protocol, _, where = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
