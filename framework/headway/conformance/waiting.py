"""How long tests wait: for what happens, with one limit that is for real hangs only.

On a machine with other work a daemon may take half a minute to start. A test therefore never takes the time
that something took for its failure; where moments must be compared, :func:`delay` says what the machine
itself adds at present.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

#: Seconds after which what a test waits for counts as never happening.
HANG = 240.0
#: The pause between two looks: so many times what a look takes, and its largest value, seconds. Many tests
#: wait side by side, and their looks must leave the processors to what they wait for.
REST, LONGEST_REST = 3.0, 1.0


def limit(seconds: float = HANG) -> float:
    """A limit for what should take so many seconds on an idle machine: never less than :data:`HANG`."""
    return max(seconds, HANG)


def until(
    condition: Callable[[], object], what: str = "", seconds: float = HANG, *,
    pause: float = 0.1, said: Callable[[], str] = str,
) -> None:  # fmt: skip
    """Wait until ``condition`` holds, with a pause of at least ``pause`` seconds between two looks. ``said``:
    more for the message, if it never does."""
    began = time.monotonic()
    end = began + limit(seconds)
    while not condition():
        now = time.monotonic()
        assert now < end, f"not within {limit(seconds):g} s: {what or condition}\n{said()}"
        time.sleep(max(pause, min(REST * (now - began), LONGEST_REST)))
        began = time.monotonic()


def delay() -> float:
    """Seconds that this machine takes at present to start a small program: the longest of three.

    A tenth of a second or less when idle, many times that under load. A bound on how long something may take
    is a constant for what it does plus a multiple of this.
    """
    longest = 0.0
    for _ in range(3):
        began = time.monotonic()
        subprocess.run([sys.executable, "-S", "-c", "pass"], check=True)
        longest = max(longest, time.monotonic() - began)
    return longest


def bound(seconds: float) -> float:
    """An upper bound, on this machine at present, for what takes less than ``seconds`` on an idle one."""
    return seconds + 20.0 * delay()
