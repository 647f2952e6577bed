"""``headway``, which kills itself without a word while a running job goes to another cluster.

``KILL_AT`` is a place with ``before`` or ``after``: "save", "saved", "requeue", "carry", or a step of
the route of a job that ran (as for ``killed_between_steps.py``).
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from headway import decisions as d
from headway.cli import main
from headway_adapters.federation import handlers
from headway_adapters.federation.live_routes import LiveRoutes
from headway_adapters.polling.moves import Moves
from headway_adapters.slurm.adapter import SlurmAdapter

AT, _, WHEN = os.environ.get("KILL_AT", "").rpartition(" ")


def around(owner: Any, name: str, place: Any) -> None:
    """Have a function kill its process before or after its work; ``place``: which place a call is."""
    work = getattr(owner, name)

    def told(*given: Any, **named: Any) -> Any:
        here = bool(AT) and place(*given) == AT
        if here and WHEN == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = work(*given, **named)
        if here:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(owner, name, told)


def step(routes: LiveRoutes, do: Any, pair: Any, wanted: Any) -> str:
    return do.value if wanted is not None and wanted.restarts else ""


around(Moves, "begin", lambda *given: "save")
around(Moves, "_end", lambda *given: "saved")
around(SlurmAdapter, "carry_out", lambda self, one, now: "requeue" if isinstance(one, d.Requeue) else "")
around(handlers, "_carried", lambda *given: "carry")
around(LiveRoutes, "_do", step)

if __name__ == "__main__":
    sys.argv[0] = "headway"
    main()
