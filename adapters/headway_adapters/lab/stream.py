"""The jobs of the lab: a workload model's, one draw after another, in a quicker time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from headway.adapter.user_side import Submission
from headway.workload import Workload

#: Jobs that come at once, so that there is a queue from the beginning.
AT_ONCE = 20
#: No job is so short that nobody sees it, seconds.
SHORTEST = 5.0


@dataclass(frozen=True)
class Arrival:
    """A job to submit, so many seconds after the stream's beginning."""

    at: float
    job: Submission


def arrivals(
    drawn: Callable[[int], Workload], speed: float, processors: int, program: Path, seed: int
) -> Iterator[Arrival]:
    """An endless stream: ``drawn(seed)``, then ``drawn(seed + 1)``, ... Times are divided by ``speed``.

    ``program`` sleeps for as many seconds as its argument says. No job is wider than ``processors``.
    """
    begin, number = 0.0, count(1)
    for more in count(seed):
        jobs = sorted(drawn(more).jobs, key=lambda one: one.job.submit_time)
        # The first jobs of all come at once, and the time goes on from the last of these.
        place = min(AT_ONCE, len(jobs)) - 1 if more == seed else 0
        first, last = jobs[place].job.submit_time, jobs[-1].job.submit_time
        for one in jobs:
            request = one.job.request
            seconds = max(SHORTEST, (one.runtime or 0.0) / speed)
            limit = max(seconds, (request.walltime or one.runtime or 0.0) / speed)
            at = begin + max(0.0, one.job.submit_time - first) / speed
            yield Arrival(at, Submission(
                name=f"lab{next(number)}", processors=min(request.processors, processors),
                walltime=math.ceil(limit), argv=(str(program), f"{seconds:.1f}"), output="/dev/null",
            ))  # fmt: skip
        # The next draw goes on as this one did.
        begin += (last - first) / speed * (len(jobs) + 1) / len(jobs)
