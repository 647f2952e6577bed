"""How the client reaches the interface: a URL or a Unix socket, with a token."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from headway.errors import UserError

#: The token, or a file that has it.
TOKEN, TOKEN_FILE = "HEADWAY_TOKEN", "HEADWAY_TOKEN_FILE"
JSON = "application/json"
_LOCAL = ("localhost", "127.0.0.1", "::1")


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self.timeout)
        try:
            connection.connect(str(self._path))
        except OSError:
            connection.close()
            raise
        self.sock = connection


@dataclass(frozen=True)
class Way:
    """Where the interface is."""

    url: str
    host: str = ""
    port: int = 0
    #: Before the version in each path, where a proxy has one.
    prefix: str = ""
    path: Path | None = None
    #: None: without TLS.
    tls: ssl.SSLContext | None = None

    @classmethod
    def to(cls, url: str, tls: ssl.SSLContext | None = None) -> Way:
        """``http://HOST:PORT``, ``https://HOST`` or ``unix:/PATH``; :class:`UserError` for another."""
        if url.startswith("unix:/"):
            return cls(url, path=Path(url.removeprefix("unix:")))
        expected = "expected http://HOST:PORT, https://HOST or unix:/PATH"
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise UserError(f"{expected}, found {url!r}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise UserError(f"{expected}, found {url!r}")
        secure = parts.scheme == "https"
        context = (tls if tls is not None else ssl.create_default_context()) if secure else None
        default = 443 if secure else 80
        return cls(url, parts.hostname, port or default, parts.path.rstrip("/"), None, context)

    @property
    def is_readable_by_others(self) -> bool:
        """Whether others can read what goes this way."""
        return self.path is None and self.tls is None and self.host not in _LOCAL

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        """A connection that is not open yet."""
        if self.path is not None:
            return UnixConnection(self.path, timeout)
        if self.tls is not None:
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def send(
        self,
        connection: http.client.HTTPConnection,
        token: str,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        """The answer to a request for JSON; raises what ``connection`` does. ``token``: "": none is sent."""
        known = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(method, self.prefix + path, body, {"Accept": JSON, **headers, **known})
        return connection.getresponse()


def token_of_environment() -> str:
    """The token that the environment names; "" if it names none. :class:`UserError` for a file that cannot be
    read."""
    if TOKEN in os.environ:
        return os.environ[TOKEN].strip()
    path = os.environ.get(TOKEN_FILE, "")
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise UserError(f"{TOKEN_FILE}: {path}: expected a file with a token: {error}") from error
