"""How commands speak to the daemon."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import msgspec

from headway.errors import Failure
from headway.service import protocol
from headway.service.protocol import Reply

#: A daemon that reads its configuration again is away for so long, seconds.
_PATIENCE = 3.0


def ask(
    path: Path,
    request: protocol.AnyRequest | protocol.OnBehalf,
    *,
    timeout: float = 45.0,
    patience: float = _PATIENCE,
) -> Reply:
    """Ask the daemon; :class:`Failure` if there is none or it does not answer within ``timeout`` seconds.
    ``patience``: for so many seconds a daemon is waited for that is not there."""
    deadline = time.monotonic() + timeout
    with _connected(path, min(patience, timeout)) as connection:
        said = b""
        try:
            connection.settimeout(timeout)
            connection.sendall(protocol.write(request))
            while not said.endswith(b"\n") and len(said) <= protocol.MAX_REPLY:
                connection.settimeout(max(0.01, deadline - time.monotonic()))
                more = connection.recv(65536)
                if not more:
                    break
                said += more
        except BrokenPipeError:
            # It may have answered before it read everything.
            said = connection.recv(65536)
        except OSError as error:
            silent = f"does not answer within {timeout:g} s; is its process stopped, the machine overloaded?"
            what = silent if isinstance(error, TimeoutError) else error.strerror or str(error)
            raise Failure(f"the daemon at {path}: {what}") from error
    try:
        return protocol.read_reply(said)
    except msgspec.DecodeError as error:
        raise Failure(f"the daemon at {path}: expected an answer, found {said[:60]!r}") from error


def _connected(path: Path, patience: float) -> socket.socket:
    end = time.monotonic() + patience
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(patience)
            connection.connect(str(path))
            return connection
        except (FileNotFoundError, ConnectionRefusedError) as error:
            connection.close()
            if time.monotonic() >= end:
                raise Failure(
                    f"no daemon answers at {path}; is `headway run` running with this configuration?"
                ) from error
            time.sleep(0.1)
        except BlockingIOError as error:
            # More clients want to connect than the daemon has taken yet.
            connection.close()
            if time.monotonic() >= end:
                raise Failure(f"the daemon at {path} has too many clients now; try again") from error
            time.sleep(0.02)
        except OSError as error:
            connection.close()
            raise Failure(f"the daemon at {path} cannot be reached: {error.strerror or error}") from error
