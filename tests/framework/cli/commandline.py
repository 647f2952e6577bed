"""What the tests of the command line share: how it is called, what it leaves, a small trace."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

#: Processors of the small trace's machine, as its header says.
MACHINE = 16


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


#: Calls ``headway`` with these arguments.
Headway = Callable[..., Ran]


def command_of(*arguments: object) -> list[str]:
    """The argument vector of ``headway`` with these arguments."""
    return [sys.executable, "-c", "from headway.cli import main; main()", *map(str, arguments)]


def small_trace_lines(jobs: int = 40) -> list[str]:
    """Jobs of 1 to 16 processors that queue up; every fifth ends long before its estimate."""
    lines = [f"; MaxProcs: {MACHINE}", "; UnixStartTime: 1000000000"]
    for number in range(1, jobs + 1):
        size = 1 + number * 7 % MACHINE
        runtime = 50 + number * 37 % 400
        estimate = runtime if number % 5 else 3 * runtime
        submit = 20 * number
        user = number % 3 + 1
        lines.append(
            f"{number} {submit} -1 {runtime} {size} -1 -1 {size} {estimate} -1 1 {user} 1 1 1 1 -1 -1"
        )
    return lines
