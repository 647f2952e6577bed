"""One run of a job on the machine, and how far it is.

Each execution has *work* (seconds at rate 1) and a *rate*. Whenever something changes the rate, the
progress so far is booked (:meth:`Execution.book`) and the completion is moved
(:meth:`~headway_adapters.emulated.agenda.Agenda.reschedule`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from headway.model import JobDescription, Placement
from headway.results import Occupation
from headway.workload.jobs import Begun, TraceJob

FOREGROUND = "foreground"
BACKGROUND = "background"

#: Seconds of work: what is less is nothing, by the rounding of sums of times.
_NOTHING = 1e-9


class Execution(msgspec.Struct, eq=False, gc=False):
    """One run of a job on the machine. Times are seconds of the run's clock."""

    #: Position in the workload.
    index: int
    trace: TraceJob
    #: The description as it is now (limits may have been changed).
    job: JobDescription
    start: float
    #: Seconds of execution after which it is killed.
    limit: float
    #: Work left, seconds at rate 1, as of ``booked_at``.
    work: float
    booked_at: float
    placement: Placement = ()
    #: Seconds of execution (not suspended) as of ``booked_at``.
    consumed: float = 0.0
    rate: float = 1.0
    suspended: bool = False
    #: While it is suspended others may have its processors.
    lends: bool = False
    #: The spans before now in which it had its processors, if it was suspended; and since when it has them.
    spans: tuple[Occupation, ...] = ()
    held_since: float | None = None
    tier: str = "foreground"
    frequency: float | None = None
    #: Its limit bounds its work and not the seconds that it takes for that; then ``consumed`` is work, too.
    bounded: bool = False
    #: What its neighbours leave of its speed: at each place where that is less than all, and in all.
    paces: dict[Any, float] | None = None
    pace: float = 1.0
    #: Share of a processor that each of its processes uses, once another job may share it.
    use: float = 1.0
    #: Moves that are going on, for which it stands still; when the last of them is over (seconds); and one
    #: just began, which is to be told.
    pausing: int = 0
    resumes: float = 0.0
    moved: bool = False
    #: Completions in the agenda with another version are void.
    version: int = 0
    #: Since when it runs as it does now; None: since its start.
    active_since: float | None = None
    #: The id of the job in whose bundle it is a member, or whose application it is; "": in none.
    bundle: str = ""
    #: The pool that it runs in; "": the cluster's only one.
    pool: str = ""

    @classmethod
    def begun(
        cls, index: int, trace: TraceJob, begun: Begun, now: float, *, bounded: bool = False
    ) -> Execution:
        """One that is under way at ``now``."""
        done = begun.elapsed if begun.done is None else begun.done
        return cls(
            index, trace, trace.job, now - begun.elapsed, trace.job.request.walltime,
            max(trace.runtime - done, 0.0), now, begun.placement, done,
            tier=begun.tier, frequency=begun.frequency, bounded=bounded, pool=begun.pool or trace.job.pool,
        )  # fmt: skip

    def book(self, now: float) -> None:
        """Count the progress since the last change of rate."""
        if not self.suspended:
            elapsed = now - self.booked_at
            self.consumed += elapsed * self.rate if self.bounded else elapsed
            self.work = max(self.work - elapsed * self.rate, 0.0)
        self.booked_at = now

    def seconds_left(self) -> float:
        """Seconds from ``booked_at`` until its work is done or its limit reached, at the present rate."""
        seconds = self.limit - self.consumed
        if self.bounded:
            seconds = min(seconds, self.work)
            if seconds <= _NOTHING:
                return 0.0
            return seconds / self.rate if self.rate > 0 else float("inf")
        if self.rate > 0:
            seconds = min(seconds, self.work / self.rate)
        return max(seconds, 0.0)
