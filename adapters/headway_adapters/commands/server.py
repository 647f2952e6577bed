"""How the emulated commands reach the emulator: a socket in its directory, one connection a command.

The kernel says which user runs a command (``SO_PEERCRED``). Root and the user that started the
emulator are managers; they may act as another user with ``HEADWAY_EMULATED_USER=NAME`` in the
command's environment (``NAME:manager`` as another manager), so that several users can be tried without
being created.

Faults are set while it runs (``emulator-ctl fault ...``), for every command or some:

- ``down``: the batch system's daemon does not answer, in its own way;
- ``slow:SECONDS``: the command is carried out at once, its answer comes late;
- ``truncate``: half of what it prints is missing;
- ``garbage``: it prints bytes that are no text;
- ``refuse-start``: every start is refused.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headway.errors import UserError

_CREDENTIALS = struct.Struct("3i")
#: What a command may send at most, bytes: a long script.
_LIMIT = 1 << 24
#: How long a caller may take to say it, seconds: one that says nothing does not stay for ever.
_PATIENCE = 60.0
#: How long the last answers may take after the end, seconds.
_LAST_ANSWERS = 2.0
ACT_AS = "HEADWAY_EMULATED_USER"
FAULTS = ("down", "slow", "truncate", "garbage", "refuse-start")


@dataclass(frozen=True)
class Caller:
    """The user that gave a command."""

    user: str
    group: str
    manager: bool
    home: str = "/"


@dataclass(frozen=True)
class Call:
    """A command as it was given."""

    name: str
    words: tuple[str, ...]
    caller: Caller
    cwd: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)
    #: What the job shall run: ("file" | "input" | "error", text); None with a command line.
    script: tuple[str, str] | None = None


@dataclass(frozen=True)
class Reply:
    """What a command prints and returns; ``wait``: it never ends by itself."""

    rc: int = 0
    out: str = ""
    err: str = ""
    wait: bool = False


@dataclass(frozen=True)
class Fault:
    """What is wrong now; for ``commands``, or for all if there are none."""

    kind: str = ""
    seconds: float = 0.0
    commands: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Fault:
        """From ``KIND[:SECONDS][@COMMAND[,COMMAND...]]``; "none" for nothing wrong.

        Raises :class:`UserError`.
        """
        what, _, commands = text.partition("@")
        kind, _, seconds = what.partition(":")
        if kind in ("none", ""):
            return cls()
        if kind not in FAULTS or (kind == "slow") != bool(seconds):
            raise UserError(
                f"fault: expected none, down, slow:SECONDS, truncate, garbage or refuse-start, found {text!r}"
            )
        try:
            length = float(seconds or 0)
        except ValueError:
            raise UserError(f"fault: expected slow:SECONDS, found {text!r}") from None
        return cls(kind, length, frozenset(name for name in commands.split(",") if name))

    def hits(self, name: str) -> bool:
        return bool(self.kind) and (not self.commands or name in self.commands)

    def __str__(self) -> str:
        seconds = f":{self.seconds:g}" if self.kind == "slow" else ""
        commands = "@" + ",".join(sorted(self.commands)) if self.commands else ""
        return f"{self.kind or 'none'}{seconds}{commands}"


class Server:
    """Listens in a directory and answers commands, one at a time."""

    def __init__(self, directory: Path, answer: Callable[[Call], Reply]) -> None:
        self.directory = directory
        self._answer = answer
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path = directory / "socket"
        path.unlink(missing_ok=True)
        # A socket's path has little room, whatever the directory is called.
        here = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        try:
            self._listener.bind(f"/proc/self/fd/{here}/socket")
        finally:
            os.close(here)
        path.chmod(0o777)
        self._listener.listen(256)
        self._own_user = os.getuid()

    def serve(self) -> None:
        """Answer until :meth:`stop`, and then finish the calls that are being answered."""
        talks: list[threading.Thread] = []
        while not self._stopped.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                break
            talks = [talk for talk in talks if talk.is_alive()]
            talks.append(threading.Thread(target=self._talk, args=(connection,), daemon=True))
            talks[-1].start()
        # The command that stopped it waits for its answer, and a caller that says nothing is not waited for.
        until = time.monotonic() + _LAST_ANSWERS
        for talk in talks:
            talk.join(max(0.0, until - time.monotonic()))

    def stop(self) -> None:
        if self._stopped.is_set():
            return
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        (self.directory / "socket").unlink(missing_ok=True)

    def _talk(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, ValueError, EOFError):
            connection.settimeout(_PATIENCE)
            call = self._read(connection)
            began = time.monotonic()
            with self._lock:
                reply = self._answer(call)
            out, err = (text.encode("utf-8", "surrogateescape") for text in (reply.out, reply.err))
            if isinstance(reply, Late):
                self._stopped.wait(max(0.0, reply.seconds - (time.monotonic() - began)))
            head = f"{reply.rc} {len(out)} {len(err)} {int(reply.wait)}\n".encode()
            connection.sendall(head + out + err)

    def _read(self, connection: socket.socket) -> Call:
        data = b""
        while b":" not in data[:20]:
            chunk = connection.recv(1 << 16)
            if not chunk:
                raise EOFError
            data += chunk
        length, _, data = data.partition(b":")
        size = int(length)
        if not 0 <= size <= _LIMIT:
            raise ValueError(f"a command of {size} bytes")
        while len(data) < size:
            chunk = connection.recv(1 << 16)
            if not chunk:
                raise EOFError
            data += chunk
        name, cwd, script, words, environment = _unframed(data)
        kind = {"F": "file", "I": "input", "E": "error"}.get(script[:1].decode())
        variables = dict(entry.partition("=")[::2] for entry in map(_text, _unframed(environment)))
        return Call(
            name=_text(name),
            words=tuple(map(_text, _unframed(words))),
            caller=self._caller(connection, variables),
            cwd=_text(cwd),
            environment=variables,
            script=(kind, _text(script[1:])) if kind else None,
        )

    def _caller(self, connection: socket.socket, environment: Mapping[str, str]) -> Caller:
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, uid, gid = _CREDENTIALS.unpack(raw)
        manager = uid in (0, self._own_user)
        if manager and (given := environment.get(ACT_AS)):
            other, _, rights = given.partition(":")
            return Caller(other, other, rights == "manager", f"/home/{other}")
        try:
            entry = pwd.getpwuid(uid)
            user, home = entry.pw_name, entry.pw_dir
        except KeyError:
            user, home = str(uid), "/"
        try:
            group = grp.getgrgid(gid).gr_name
        except KeyError:
            group = str(gid)
        return Caller(user, group, manager, home)


@dataclass(frozen=True)
class Late(Reply):
    """An answer that comes ``seconds`` after its command."""

    seconds: float = 0.0


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _unframed(data: bytes) -> Sequence[bytes]:
    found = []
    while data:
        length, _, data = data.partition(b":")
        size = int(length)
        found.append(data[:size])
        data = data[size:]
    return found
