"""The options of every adapter that runs commands: how they run, and where.

An adapter's options inherit :class:`TransportOptions` and hand themselves to
:func:`~headway_adapters.transport.make.make_transport`.
Without the key ``ssh`` commands run on this machine; with it, on another:

    ssh:
      host: login.example.org
      user: headway

Nothing is read from ``~/.ssh/config``: what counts stands in the site's file.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

Seconds = Annotated[float, Field(gt=0, le=86400)]
Port = Annotated[int, Field(ge=1, le=65535)]


def _as_written(value: Any) -> Any:
    """YAML reads a plain yes or no as true or false."""
    return ("yes" if value else "no") if isinstance(value, bool) else value


#: For what headway finds out by itself unless it is told.
AutoYesNo = Annotated[Literal["auto", "yes", "no"], BeforeValidator(_as_written)]

_USER = r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]*"
_HOST = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_.])?"
_ADDRESS = r"[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?"
_HOP = re.compile(
    rf"(?:(?P<user>{_USER})@)?(?:(?P<host>{_HOST})|\[(?P<address>{_ADDRESS})\])(?::(?P<port>[0-9]+))?"
)
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")
_KEY = re.compile(r"(?:ssh-|ecdsa-sha2-)[a-z0-9-]+ [A-Za-z0-9+/]+={0,2}(?: .*)?")


class Hop(BaseModel):
    """One machine that a connection is made to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str
    port: int
    #: None: the same as on the machine behind it.
    user: str | None = None

    @property
    def address(self) -> str:
        """As a person writes it."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{name}:{self.port}"


def parse_hop(text: str) -> Hop:
    """``user@host:port`` with user and port left out at will; an IPv6 address in brackets.

    Raises ValueError for anything else.
    """
    match = _HOP.fullmatch(text.strip())
    port = int(match["port"] or 22) if match else 0
    if match is None or not 1 <= port <= 65535:
        raise ValueError(f"expected user@host:port (user and port may be left out), found {text!r}")
    return Hop(host=match["host"] or match["address"], port=port, user=match["user"])


class SshOptions(BaseModel):
    """The machine that the commands run on. All times are seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: Name or address.
    host: str
    port: Port = 22
    #: The user that logs in there; otherwise the user that headway runs as.
    user: str | None = None
    #: File of the private key. With it no other key is offered.
    key_file: str | None = None
    #: Whether keys of the SSH agent (SSH_AUTH_SOCK) may be used.
    agent: bool = True
    #: File of known host keys; otherwise ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts.
    known_hosts: str | None = None
    #: The only host key that ``host`` may show, instead of known_hosts: its fingerprint
    #: (``SHA256:...``) or the key itself (``ssh-ed25519 AAAA...``).
    host_key: str | None = None
    #: Machines to go through, the nearest first. Each one's host key must be in known_hosts.
    proxy_jump: tuple[str, ...] = ()
    #: For each machine: until it must have accepted the connection, shown its key and let us in.
    connect_timeout: Seconds = 10.0
    #: Between two signs of life on an idle connection; 0: none.
    keepalive: Annotated[float, Field(ge=0, le=86400)] = 30.0
    #: Sessions that the server allows on one connection (its MaxSessions).
    max_sessions: Annotated[int, Field(ge=1, le=1000)] = 10

    @field_validator("host")
    @classmethod
    def _host_is_one(cls, value: str) -> str:
        if re.fullmatch(f"{_HOST}|{_ADDRESS}", value) is None:
            raise ValueError("the name or address of a machine")
        return value

    @field_validator("user")
    @classmethod
    def _user_is_one(cls, value: str | None) -> str | None:
        if value is not None and re.fullmatch(_USER, value) is None:
            raise ValueError("the name of a user")
        return value

    @field_validator("proxy_jump", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",")) if value.strip() else ()
        return value

    @field_validator("proxy_jump")
    @classmethod
    def _hops_are_hops(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            parse_hop(text)
        return value

    @field_validator("host_key")
    @classmethod
    def _key_is_a_key(cls, value: str | None) -> str | None:
        if value is not None and not _FINGERPRINT.fullmatch(value) and not _KEY.fullmatch(value):
            raise ValueError("expected a fingerprint (SHA256:...) or a public key (ssh-ed25519 AAAA...)")
        return value

    @property
    def target(self) -> Hop:
        """The machine itself."""
        return Hop(host=self.host, port=self.port, user=self.user)

    @property
    def hops(self) -> tuple[Hop, ...]:
        """Every machine on the way, the target last."""
        return (*(parse_hop(text) for text in self.proxy_jump), self.target)


class TransportOptions(BaseModel):
    """What every adapter that runs commands has among its options. All times are seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: How long a command may take before it counts as unanswered.
    command_timeout: Seconds = 15.0
    #: Largest output of one command, bytes.
    output_limit: Annotated[int, Field(ge=1 << 20)] = 1 << 30
    #: Commands that run at the same time.
    parallel_commands: Annotated[int, Field(ge=1, le=64)] = 8
    #: Where the batch system's commands are; otherwise they are looked for in PATH and the system's
    #: directories.
    bin_dir: str | None = None
    #: The machine to run them on, over SSH; otherwise this machine.
    ssh: SshOptions | None = None
