"""Where the interface listens: ``HOST:PORT``, ``[IPv6]:PORT`` or ``unix:/PATH``."""

from __future__ import annotations

import ipaddress
import re
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

from headway.errors import Failure, UserError
from headway.service.server import MAX_PATH

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
        if not path.is_absolute() or len(str(path).encode()) > MAX_PATH:
            raise UserError(
                f"serve.listen: expected unix: and a whole path of at most {MAX_PATH} bytes, found {text!r}"
            )
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
    try:
        return _bound_path(address.path, mode) if address.path is not None else _bound_port(address)
    except OSError as error:
        raise Failure(f"serve.listen: {address}: cannot be bound: {error.strerror or error}") from error


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


def _bound_path(path: Path, mode: int) -> socket.socket:
    _clear(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        # Nobody can connect before it listens, so that the mode is right by then.
        path.chmod(mode)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _clear(path: Path) -> None:
    """Take away the socket of a process that was killed."""
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise UserError(f"serve.listen: unix:{path}: expected a path for a socket, found another file")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
    raise Failure(f"serve.listen: unix:{path}: another process listens there")
