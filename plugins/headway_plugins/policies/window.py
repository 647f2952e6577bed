"""Window-K: of the K first jobs of the queue any that fits starts; other jobs wait to enter the window.

I. Ababneh, S. Bani-Mohammad: A new window-based job scheduling scheme for 2D mesh multicomputers.
Simulation Modelling Practice and Theory 19(1), 2011. A. Chandio, K. Bilal, N. Tziritas, Z. Yu,
Q. Jiang, S. Khan, C. Xu: A comparative study on resource allocation and energy efficient job
scheduling strategies in large-scale parallel computing systems. Cluster Computing, 2014, section 5.

The window holds the K jobs that have waited longest (K: option ``size``). Its jobs are tried in queue
order, and as some start, the jobs behind them enter and are tried as well. So the policy walks once along
the queue and stops when it has skipped K jobs. Nothing is booked.
"""

from __future__ import annotations

import pydantic

from headway.decisions import Decision
from headway.hookspecs import hookimpl
from headway.plugins import Again, Study, Traits
from headway.view import View


class WindowOptions(pydantic.BaseModel):
    """Options of the window."""

    model_config = pydantic.ConfigDict(extra="forbid")

    size: int = pydantic.Field(
        default=10, ge=1, le=1_000_000, description="K: number of waiting jobs in the window"
    )


class Window:
    """Window-K: start whatever fits among the first K jobs of the queue."""

    traits = Traits(
        ask_again=Again.DOMAIN,
        study=Study(backfills=True),
        paper=(
            "I. Ababneh, S. Bani-Mohammad: A new window-based job scheduling scheme for 2D mesh "
            "multicomputers, Simulation Modelling Practice and Theory 19(1), 2011"
        ),
    )
    Options = WindowOptions

    def __init__(self, options: WindowOptions) -> None:
        self.options = options

    @hookimpl
    def schedule(self, view: View) -> list[Decision]:
        queue, size = view.queue, self.options.size
        if view.fresh >= 0 and len(queue) - view.fresh >= size:
            return view.made  # the window was full before these arrived, and nothing became free
        passed = 0
        for job in queue:
            reason = f"fits, in the window of the first {size}" if passed else "first in the queue"
            if view.start(job, reason) is None:
                passed += 1
                if passed == size:
                    break
        return view.made
