"""``headway``, which kills itself without a word at a step of given jobs.

``KILL_FILE`` names a file that may come and go: a line such as "Start before", "Start after" (a decision is
handed to the clusters) or "JobStarted seen" (an event has come, and nobody knows it yet), and a line with the
ids of the jobs. The file is removed before the kill.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headway.cli import main
from headway_adapters.federation import Federation

_apply, _wait = Federation.apply, Federation.wait


def _due(when: str, several: Iterable[Any]) -> bool:
    """Whether this is the moment, for one of these decisions or events."""
    try:
        step, jobs = Path(os.environ["KILL_FILE"]).read_text().splitlines()
    except (FileNotFoundError, ValueError):
        return False
    kind, _, moment = step.partition(" ")
    return moment == when and any(
        type(one).__name__ == kind and one.job_id in jobs.split() for one in several
    )


def _die() -> None:
    Path(os.environ["KILL_FILE"]).unlink()
    os.kill(os.getpid(), signal.SIGKILL)


def apply(self: Federation, now: float, decisions: Any) -> Any:
    if _due("before", decisions):
        _die()
    after = _due("after", decisions)
    outcomes = _apply(self, now, decisions)
    if after:
        _die()
    return outcomes


def wait(self: Federation, deadline: float | None) -> Any:
    moment = _wait(self, deadline)
    if moment is not None and _due("seen", moment[1]):
        _die()
    return moment


Federation.apply, Federation.wait = apply, wait  # type: ignore[method-assign]

if __name__ == "__main__":
    sys.argv[0] = "headway"
    main()
