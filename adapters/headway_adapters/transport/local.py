"""Commands as child processes of this process."""

from __future__ import annotations

import contextlib
import os
import pwd
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO

from headway.errors import Failure
from headway_adapters.transport.base import Result, Transport

#: Searched after PATH: administration commands live here, and a service's PATH often lacks them.
_SYSTEM_DIRECTORIES = ("/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin", "/usr/local/sbin")


class LocalTransport(Transport):
    """Runs commands on this machine."""

    def __init__(
        self,
        *,
        environment: Mapping[str, str] | None = None,
        without: Sequence[str] = (),
        bin_dir: str | None = None,
        output_limit: int = 1 << 30,
        workers: int = 8,
        cwd: str | None = None,
    ) -> None:
        """``environment`` is added to this process's own, from which names that begin with one of
        ``without`` are taken away first. ``bin_dir`` is the only place where programs are looked
        for when it is given. ``output_limit`` is bytes of standard output a command."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(tuple(without) or ("\0",))}
        self._environment = {**kept, "LC_ALL": "C", **(environment or {})}
        self._bin_dir = bin_dir
        self._limit = output_limit
        self._cwd = cwd
        self.workers = workers
        self.user = _user()
        self._lock = threading.Lock()
        self._children: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def find(self, program: str) -> str:
        """Where ``program`` is; raises :class:`Failure` naming it when it is nowhere."""
        if self._bin_dir is not None:
            path: str | None = os.path.join(self._bin_dir, program)
            where = self._bin_dir
            if not os.access(str(path), os.X_OK):
                path = None
        else:
            where = os.pathsep.join([self._environment.get("PATH", ""), *_SYSTEM_DIRECTORIES])
            path = shutil.which(program, path=where)
        if path is None:
            raise Failure(f"the program {program!r} is not installed (looked in {where})")
        return path

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        return self._run(argv, None, timeout)

    def feed(self, argv: Sequence[str], given: bytes, timeout: float) -> Result:
        with tempfile.TemporaryFile() as source:
            source.write(given)
            source.seek(0)
            return self._run(argv, source, timeout)

    def _run(self, argv: Sequence[str], source: IO[bytes] | None, timeout: float) -> Result:
        began = time.monotonic()
        path = self.find(argv[0])
        with self._lock:
            if self._closed:
                raise Failure(f"{argv[0]}: this connection is closed")
            try:
                child = subprocess.Popen(
                    [path, *argv[1:]],
                    stdin=source if source is not None else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=self._environment,
                    cwd=self._cwd,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise Failure(f"{argv[0]} could not be started: {error}") from error
            self._children.add(child)
        try:
            return self._collect(child, tuple(argv), began, timeout)
        finally:
            with self._lock:
                self._children.discard(child)

    def _collect(
        self, child: subprocess.Popen[bytes], argv: tuple[str, ...], began: float, timeout: float
    ) -> Result:
        assert child.stdout is not None and child.stderr is not None
        out, err = bytearray(), bytearray()
        timed_out = too_long = False
        with child, selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ, out)
            selector.register(child.stderr, selectors.EVENT_READ, err)
            while selector.get_map():
                left = began + timeout - time.monotonic()
                if left <= 0:
                    timed_out = True
                    break
                for key, _ in selector.select(left):
                    chunk = os.read(key.fd, 1 << 16)
                    if chunk:
                        key.data.extend(chunk)
                    else:
                        selector.unregister(key.fileobj)
                if len(out) > self._limit or len(err) > self._limit:
                    too_long = True
                    break
            if not timed_out and not too_long:
                try:
                    child.wait(max(0.0, began + timeout - time.monotonic()))
                except subprocess.TimeoutExpired:
                    timed_out = True
            if timed_out or too_long:
                _end(child)
        return Result(
            argv=argv,
            rc=124 if timed_out else child.returncode,
            stdout=bytes(out),
            stderr=err.decode("utf-8", errors="replace"),
            seconds=time.monotonic() - began,
            timed_out=timed_out,
            too_long=too_long,
        )

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for child in self._children:
                _end(child)


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child and what it started (it leads its own process group)."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
