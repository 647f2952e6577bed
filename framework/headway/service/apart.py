"""Processes that are forked off the daemon to compute with a copy of its scheduler.

Such a process has the whole scheduler as it was after its last step, shares its memory until one of both
writes, and closes everything that leads out: sockets, the journal, the log. It has no other threads, so it
takes no lock of theirs: it computes, and writes to one descriptor. The daemon's scheduler sees nothing of it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import warnings
from collections.abc import Callable
from typing import Any

from headway.inquiry.going_on import OutOfTime

#: A process gives way to the daemon by so much.
_NICE = 5
_AGAIN = 0.1


def fork() -> int:
    """:func:`os.fork`, from a process with several threads. Raises :class:`OSError` if there is no room."""
    with warnings.catch_warnings():
        # Python warns of locks of other threads; the process takes none.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def begin(work: Callable[[int], object]) -> tuple[int, int]:
    """Have a forked process do the work alone: its number, and the descriptor from which can be read what it
    writes to the one that it is given. Raises :class:`OSError` if no process can be made."""
    inlet, outlet = os.pipe()
    try:
        pid = fork()
    except OSError:
        os.close(inlet)
        os.close(outlet)
        raise
    if not pid:
        alone(lambda: work(outlet), outlet)
    os.close(outlet)
    return pid, inlet


def alone(work: Callable[[], object], keep: int) -> None:
    """In a forked process: do the work with nothing open but ``keep``, and end."""
    try:
        # Nothing is collected, so nothing of the daemon's is closed or written twice.
        gc.disable()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2 and int(name) != keep:
                with contextlib.suppress(OSError):
                    os.close(int(name))
        with contextlib.suppress(OSError):
            os.nice(_NICE)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            # If memory is short, not the daemon goes.
            file.write("1000")
        work()
    finally:
        os._exit(0)


def end_by_alarm(seconds: float) -> None:
    """In a forked process: raise :class:`OutOfTime` after so many seconds of wall time, wherever it is."""

    def over(*_: Any) -> None:
        raise OutOfTime

    signal.signal(signal.SIGALRM, over)
    # Again and again: a plugin may have caught it.
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001), _AGAIN)


def write_all(outlet: int, text: bytes) -> None:
    """Write all of a text to a descriptor."""
    while text:
        text = text[os.write(outlet, text) :]
