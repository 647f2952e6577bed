"""A Unix socket at a path: bound so that what an earlier process left there is no hindrance."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from pathlib import Path

from headway.errors import Failure, UserError

#: What the kernel takes for the path of a Unix socket, bytes.
MAX_PATH = 107


def listen_at(path: Path, where: str, other: str, *, mode: int = 0o666, backlog: int = 64) -> socket.socket:
    """A socket that listens at the path, with this access mode of its file.

    ``where`` leads messages; ``other``: what may listen there already. :class:`UserError` for a path that
    cannot be a socket's, :class:`Failure` if it cannot be bound.
    """
    if len(os.fsencode(path)) > MAX_PATH:
        raise UserError(
            f"{where}: expected a path of at most {MAX_PATH} bytes, which is what the system takes for a "
            f"socket; found one of {len(os.fsencode(path))}"
        )
    _clear(path, where, other)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        # Nobody can connect before it listens, so that the mode is right by then.
        path.chmod(mode)
        listener.listen(backlog)
    except OSError as error:
        listener.close()
        raise Failure(f"{where}: cannot be bound: {error.strerror or error}") from error
    return listener


def _clear(path: Path, where: str, other: str) -> None:
    """Take away the socket of a process that was killed."""
    try:
        kind = path.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(kind):
        raise UserError(f"{where}: expected a path for a socket, found another file")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
            return
        except OSError as error:
            raise Failure(f"{where}: cannot be used: {error.strerror or error}") from error
    raise Failure(f"{where}: {other}")
