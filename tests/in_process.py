"""The emulated commands without a process a command, for tests of what speaks to them.

The client that stands for each command (``commands/client.py``) is tested where commands are run as a user
runs them. A process costs more than all that the emulator does for it.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headway_adapters.commands.client import ALSO, ENVIRONMENT, framed
from headway_adapters.transport import LocalTransport, Result, Transport

#: Commands that read a script; the client does.
SCRIPTED = ("qsub", "bsub")


class InProcess(Transport):
    """Speaks to an emulator's socket as its commands do."""

    def __init__(self, directory: Path, environment: Mapping[str, str], **settings: Any) -> None:
        """``directory``: the emulator's. ``environment``: that of the commands. ``settings``: those of
        :class:`LocalTransport`, which runs what is no command of the emulator's."""
        self._commands = directory / "bin"
        # A socket's path has little room.
        self._directory = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        variables = [
            f"{key}={value}"
            for key, value in environment.items()
            if key.startswith(ENVIRONMENT) or key in ALSO
        ]
        self._environment = b"".join(framed(os.fsencode(one)) for one in variables)
        self._local = LocalTransport(environment=dict(environment), **settings)

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        name = argv[0]
        if name in SCRIPTED or not (self._commands / name).is_symlink():
            return self._local.run(argv, timeout)
        began = time.monotonic()
        words = b"".join(framed(os.fsencode(word)) for word in argv[1:])
        parts = (name.encode(), b"/", b"", words, self._environment)
        message = framed(b"".join(framed(part) for part in parts))
        try:
            head, _, rest = self._ask(message, timeout).partition(b"\n")
        except OSError:
            head, rest = b"", b""
        if not head:
            # Nobody is there, or answers in time: the client knows what each command says then.
            left = timeout - (time.monotonic() - began)
            return self._local.run(argv, left) if left > 0 else _late(argv, timeout)
        code, out, error, wait = map(int, head.split())
        if wait:
            time.sleep(max(0.0, timeout - (time.monotonic() - began)))
            return _late(argv, timeout, rest[:out], rest[out : out + error])
        said = rest[out : out + error].decode("utf-8", errors="replace")
        return Result(tuple(argv), code, rest[:out], said, time.monotonic() - began)

    def _ask(self, message: bytes, timeout: float) -> bytes:
        """What the emulator answers; raises :class:`OSError` if it does not within ``timeout`` seconds."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            connection.connect(f"/proc/self/fd/{self._directory}/socket")
            connection.sendall(message)
            answer = b""
            while chunk := connection.recv(1 << 20):
                answer += chunk
            return answer

    def close(self) -> None:
        self._local.close()


def _late(argv: Sequence[str], timeout: float, out: bytes = b"", error: bytes = b"") -> Result:
    said = error.decode("utf-8", errors="replace")
    return Result(tuple(argv), 124, out, said, timeout, timed_out=True)
