"""``headway``, which kills itself without a word at a step of a route between clusters.

``KILL_AT`` is a step (``headway_adapters.federation.route_steps.Do``) with ``before`` or ``after``, such as
"seal after".
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from headway.cli import main
from headway_adapters.federation.live_routes import LiveRoutes

_carry_out = LiveRoutes._do


def _do(self: LiveRoutes, do: Any, *rest: Any) -> Any:
    step, _, when = os.environ.get("KILL_AT", "").rpartition(" ")
    if step == do.value and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    outcome = _carry_out(self, do, *rest)
    if step == do.value:
        os.kill(os.getpid(), signal.SIGKILL)
    return outcome


LiveRoutes._do = _do  # type: ignore[method-assign]

if __name__ == "__main__":
    sys.argv[0] = "headway"
    main()
