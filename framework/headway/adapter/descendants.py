"""Processes that must be gone when the process is that started them: what they started, too, whatever
sessions they made."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable

import psutil

#: The exit code of a process that never became its program.
NEVER_BECAME = 127
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
#: Between two looks at what is to end, seconds.
_STEP = 0.05


def adopt_orphans() -> None:
    """Become the parent of what descendants leave behind: a process that forks away stays within reach."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants() -> None:
    """End all that this process started and what that started, whatever sessions they made. They are gone
    then."""
    me = psutil.Process()
    while found := [one for one in me.children(recursive=True) if _runs(one)]:
        for one in found:
            with contextlib.suppress(psutil.Error):
                one.kill()
        time.sleep(_STEP)


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def with_its_parent() -> Callable[[], None]:
    """What a process does before it becomes its program (``preexec_fn``): it is to end with this one, by
    SIGKILL."""
    parent = os.getpid()
    libc = ctypes.CDLL(None, use_errno=True)

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(NEVER_BECAME)

    return prepare
