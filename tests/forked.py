"""headway's commands as processes of their own, without the second that each takes to import everything.

The process is a fork of the test's own, which has imported it all; the command line runs in it as it does in
a new one. A daemon, and whatever tests kill, is a new process: a fork has the test's open files.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NoReturn

from waiting import HANG

from headway.cli import main

#: Seconds between two looks at the process.
PAUSE = 0.02


def headway(
    words: Sequence[str], *, environment: Mapping[str, str], directory: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What ``headway WORDS`` ends with, and what it prints."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            _run(words, environment, directory, out, err)
        code = _ended(child, words)
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode())
    return subprocess.CompletedProcess(["headway", *words], code, *said)


def _run(
    words: Sequence[str], environment: Mapping[str, str], directory: Path | None, out: BinaryIO, err: BinaryIO
) -> NoReturn:
    """Be that process."""
    code: object = 70
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(descriptor, "w", closefd=False), write_through=True)
            for descriptor in (1, 2)
        )
        sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
        if directory is not None:
            os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        main(list(words))
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        os._exit(code if isinstance(code, int) else 1)


def _ended(child: int, words: Sequence[str]) -> int:
    """The exit code of the process, once it has ended."""
    end = time.monotonic() + HANG
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"not within {HANG:g} s: headway {' '.join(words)}")
        time.sleep(PAUSE)
