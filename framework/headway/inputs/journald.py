"""systemd's journal as the place of the log: its native protocol, in which an entry has fields.

A datagram is an entry (systemd.io/JOURNAL_NATIVE_PROTOCOL). A program knows that its standard error is the
journal's by ``JOURNAL_STREAM`` (systemd.exec(5)).
"""

from __future__ import annotations

import os
import re
import socket
import struct
import sys
from collections.abc import Iterable, Mapping
from typing import Any

#: Where the journal listens.
SOCKET = "/run/systemd/journal/socket"
#: What syslog calls our levels.
PRIORITIES = {"critical": 2, "error": 3, "warning": 4, "info": 6, "debug": 7}
#: Characters of a value, and values of a field, that are told.
_LONGEST, _MOST = 16_384, 200
#: Fields with a meaning of their own, which no entry of ours may have: these have a prefix instead.
_RESERVED = re.compile(
    r"(MESSAGE|PRIORITY|ERRNO|UNIT|USER_UNIT|TID|INVOCATION_ID|DOCUMENTATION)$|(CODE|SYSLOG|OBJECT)_"
)
_PREFIX = "HEADWAY_"


def is_stream(environment: Mapping[str, str], fd: int = 2) -> bool:
    """Whether this descriptor leads to the journal."""
    said = environment.get("JOURNAL_STREAM", "")
    try:
        found = os.fstat(fd)
    except OSError:
        return False
    return said == f"{found.st_dev}:{found.st_ino}"


def field(name: str) -> str:
    """The field of a key: letters, digits and underscores, not beginning with one of the latter two."""
    made = re.sub(r"[^A-Z0-9_]", "_", name.upper())[:50]
    return f"{_PREFIX}{made}" if not made[:1].isalpha() or _RESERVED.match(made) else made


def entry(message: str, level: str, values: Mapping[str, Any]) -> bytes:
    """A datagram. A list has a field for each of its values, so that each of them is found."""
    fields: list[tuple[str, Any]] = [
        ("MESSAGE", message),
        ("PRIORITY", PRIORITIES.get(level, 6)),
        ("SYSLOG_IDENTIFIER", "headway"),
    ]
    for key, value in values.items():
        several: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
        fields += [(field(key), one) for one in list(several)[:_MOST] if one is not None]
    return b"".join(_written(name, str(value)) for name, value in fields)


def _written(name: str, value: str) -> bytes:
    data = value[:_LONGEST].encode("utf-8", "backslashreplace")
    if b"\n" in data:
        return name.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n"
    return name.encode() + b"=" + data + b"\n"


class JournalLog:
    """A logger of structlog's that sends entries; where that fails they go to standard error."""

    def __init__(self, address: str = SOCKET) -> None:
        self._address = address
        self._socket: socket.socket | None = None

    def msg(self, message: str, level: str, values: Mapping[str, Any]) -> None:
        """One entry."""
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.sendto(entry(message, level, values), self._address)
        except OSError:
            print(prefixed(message, level), file=sys.stderr, flush=True)

    debug = info = warning = warn = error = err = critical = exception = log = fatal = msg


def prefixed(text: str, level: str) -> str:
    """Lines for the journal's stream, which takes a priority before each (sd-daemon(3))."""
    mark = f"<{PRIORITIES.get(level, 6)}>"
    return "\n".join(mark + line for line in text.splitlines() or [""])
