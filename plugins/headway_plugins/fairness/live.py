"""The fairness of a live cluster's past, from what the daemon recorded of it.

Resource equality needs only which jobs were present and which jobs ran when, under whatever scheduler. So it
is taken from the journal's events of all runs that drove or watched the cluster. A run that begins is told of
all jobs that exist, so a job has several submissions and starts in the journal: the first submission
counts, and the last start before its end. What the daemon did not see (a job that came and went while it
was down) is missing. A job that a user or an operator held arrives when it is released. A job with a begin
time arrives when that time has come. A job that is held anew while it waits arrives anew.

Fair start times need a scheduler that can be run again from each arrival; they are there for runs of the
emulated cluster (:mod:`headway_plugins.fairness.starts`). Of a live cluster the report says which job
overtook which: a later arrival in the same pool that began while an earlier job waited.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from headway.events import (
    Event,
    JobChanged,
    JobEnded,
    JobHeld,
    JobReleased,
    JobRequeued,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    SitePolicyChanged,
)
from headway.journal import Journal, RunRecord
from headway.model import ClusterDescription, JobDescription, SitePolicy
from headway.results import Activity, JobResult, RunResult

#: A run of the emulated cluster has a clock of its own.
_EMULATED = "dry-run"
_OF_A_JOB = JobStarted | JobEnded | JobRequeued | JobSuspended | JobResumed | JobHeld | JobReleased


@dataclass
class _Course:
    """What was told of a job so far; absolute seconds."""

    job: JobDescription
    start: float | None = None
    since: float | None = None
    end: float | None = None
    state: str = "pending"
    starts: int = 0
    spans: list[tuple[float, float]] = field(default_factory=list)

    def hold(self) -> None:
        """It cannot start, and not because of the scheduler."""
        if self.start is None:
            self.job = msgspec.structs.replace(self.job, held=True)

    def release(self, time: float) -> None:
        """Nothing but the scheduler keeps it from starting, from now on."""
        if self.start is None and self.job.held:
            later = max(time, self.job.begin_time or time)
            self.job = msgspec.structs.replace(self.job, held=False, begin_time=later)

    def describe(self, job: JobDescription, time: float) -> None:
        """It is described anew; when it came, and from when it could start, stay."""
        held, begin = self.job.held, self.job.begin_time
        self.job = msgspec.structs.replace(
            job,
            submit_time=self.job.submit_time,
            begin_time=job.begin_time if job.begin_time is not None else begin,
            held=held,
        )
        if job.held != held:
            self.hold() if job.held else self.release(time)

    def stop(self, time: float) -> None:
        """It uses its processors no longer."""
        if self.since is not None:
            if time > self.since:
                self.spans.append((self.since, time))
            self.since = None

    def follow(self, event: Event) -> None:
        """What happened to the job while it was there."""
        if isinstance(event, JobStarted):
            if self.start is None:
                # Held until then, if no event told its release.
                self.release(event.time)
                self.start = self.since = event.time
                self.starts += 1
                self.state = "running"
        elif isinstance(event, JobRequeued):
            self.stop(event.time)
            self.start, self.state = None, "pending"
        elif isinstance(event, JobHeld):
            self.hold()
        elif isinstance(event, JobReleased):
            self.release(event.time)
        elif isinstance(event, JobSuspended):
            self.stop(event.time)
        elif self.start is not None and self.since is None:
            self.since = event.time

    def result(self, last: float) -> tuple[JobResult, list[Activity]]:
        """Its record, and the spans in which it ran and runs no longer; ``last``: when news came last."""
        seconds = sum(
            end - begin for begin, end in self.spans if self.start is not None and begin >= self.start
        )
        one = JobResult(
            self.job,
            self.start,
            self.end,
            self.state,
            seconds,
            pool=self.job.pool,
            starts=self.starts,
            active_since=last if self.since is None else self.since,
        )
        size = self.job.request.processors
        return one, [Activity(self.job.id, begin, end, self.job.pool, size) for begin, end in self.spans]


@dataclass(frozen=True)
class Past:
    """What a journal tells of a live cluster."""

    #: All its jobs, as one run, in order of submission.
    result: RunResult
    last_run: RunRecord
    #: What the batch system said last of its site's policy; None: nothing.
    policy: SitePolicy | None


def past(journal: Journal) -> Past | None:
    """The past of the cluster of this journal, read once; None: it has no live run."""
    runs = [run for run in journal.runs() if run.info.mode != _EMULATED]
    if not runs:
        return None
    policy: SitePolicy | None = None

    def events() -> Iterator[Event]:
        nonlocal policy
        for run in runs:
            for cycle in journal.cycles(run.id):
                for event in cycle.events:
                    if isinstance(event, SitePolicyChanged):
                        policy = event.policy
                    yield event

    result = course_of(events(), runs[-1].info.cluster)
    return Past(result, runs[-1], policy)


def course_of(events: Iterable[Event], cluster: ClusterDescription) -> RunResult:
    """The jobs that these events tell of, as one run; times are the events' times."""
    told = _Told()
    for event in events:
        told.tell(event)
    last = told.last
    courses = sorted([*told.gone, *told.present.values()], key=lambda course: course.job.submit_time)
    found = [course.result(last if course.end is None else course.end) for course in courses]
    return RunResult(
        "journal",
        cluster,
        [result for result, _ in found],
        activities=[activity for _, activities in found for activity in activities],
    )


class _Told:
    """The jobs that events have told of so far."""

    def __init__(self) -> None:
        self.present: dict[str, _Course] = {}
        self.gone: list[_Course] = []
        #: When something happened last.
        self.last = float("-inf")
        self._ended: dict[str, float] = {}

    def tell(self, event: Event) -> None:
        self.last = max(self.last, event.time)
        if isinstance(event, JobSubmitted):
            self._submitted(event)
        elif isinstance(event, JobChanged):
            course = self.present.get(event.job.id)
            if course is not None:
                course.describe(event.job, event.time)
        elif isinstance(event, _OF_A_JOB):
            course = self.present.get(event.job_id)
            if course is None:
                return
            if isinstance(event, JobEnded):
                course.stop(event.time)
                course.end, course.state = event.time, event.outcome
                self._ended[event.job_id] = event.time
                self.gone.append(self.present.pop(event.job_id))
            else:
                course.follow(event)

    def _submitted(self, event: JobSubmitted) -> None:
        known = self.present.get(event.job.id)
        if known is None and self._ended.get(event.job.id, float("-inf")) <= event.job.submit_time:
            self.present[event.job.id] = _Course(event.job)
        elif known is not None and known.job.held and not event.job.held:
            # The job was released while headway did not look.
            known.release(event.time)
