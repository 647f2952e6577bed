"""What a run is judged by.

D. Zhou, V. Lo: Wave Scheduler. JSSPP 2005, section 5.2: the failure rate, the slowdown from the first
execution on, and the migrations. Means are over jobs that are done, so a slowdown beside a high failure rate
says little: all of them are to be shown together. The slowdown from submission on, failures at the first
placement, hosts asked, lost work and retries are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway_plugins.wave.draws import Hours
from headway_plugins.wave.jobs import Course, Outcome
from headway_plugins.wave.network import Run

#: Above this failure rate, means rest on a handful of jobs and are not shown.
TOO_MANY_FAIL = 0.95


@dataclass(frozen=True)
class Measured:
    """Of one run. None: no job that it could be the mean of."""

    jobs: int
    #: Shares of the jobs: all failures, and failures at the first placement.
    failure: float | None
    placement: float | None
    #: Share of the jobs that are neither done nor failed at the end of the run.
    unfinished: float | None
    #: Turnaround over run time.
    slowdown: float | None
    from_submission: float | None
    migrations: float | None
    retries: float | None
    #: Hosts that a search asks.
    asked: float | None
    #: Work that was thrown away, hours.
    lost_work: float

    @property
    def telling(self) -> bool:
        """Whether enough jobs are done for means."""
        return self.failure is not None and self.failure <= TOO_MANY_FAIL


def slowdown(course: Course, since: Hours | None) -> float:
    """The time from ``since`` to the end over the run time on a dedicated machine."""
    assert since is not None and course.end is not None
    return float((course.end - since) / course.job.runtime)


def measured(run: Run) -> Measured:
    """The figures of a run."""
    courses = run.courses
    done = [course for course in courses if course.outcome is Outcome.DONE]
    return Measured(
        jobs=len(courses),
        failure=_mean([course.failed for course in courses]),
        placement=_mean([course.outcome is Outcome.FAILED_PLACEMENT for course in courses]),
        unfinished=_mean([course.outcome is Outcome.UNFINISHED for course in courses]),
        slowdown=_mean([slowdown(course, course.first) for course in done]),
        from_submission=_mean([slowdown(course, course.job.submit) for course in done]),
        migrations=_mean([course.migrations for course in done]),
        retries=_mean([course.retries for course in courses]),
        asked=run.asked / run.searches if run.searches else None,
        lost_work=float(sum(course.lost for course in courses)),
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
