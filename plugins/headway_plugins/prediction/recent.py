"""A job is predicted to run as long as its user's last two jobs did, on average.

D. Tsafrir, Y. Etsion, D. G. Feitelson: Backfilling Using System-Generated Predictions Rather Than User
Runtime Estimates. IEEE TPDS 18(6), 2007. The prediction serves planning alone: the user's estimate remains
the limit, and no prediction is beyond it. A user of whom fewer jobs have ended is not answered, so the next
predictor is asked, and then the estimate counts: predictors are such a chain, in configured order.

A job that outlives its prediction gets 1 minute more, then 5, 15 and 30 minutes, 1, 2, 5, 10, 20, 50 and 100
hours, one after the other and never beyond its estimate. Its pool is looked at when that happens, if a job
waits there that is not larger than what is free; so what is booked behind it is corrected before it lets
anybody start.

Decisions: a job counts when it ends, however it ends, with the time from its last start on without what it
was suspended; one that never ran does not. What a job was predicted at its arrival holds until it starts:
later ends do not change it. What is known of users is kept over a restart.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from headway.events import Event, JobEnded, JobRequeued, JobResumed, JobStarted, JobSubmitted, JobSuspended
from headway.hookspecs import hookimpl
from headway.state import Job, State

MINUTE, HOUR = 60.0, 3600.0

#: Seconds that a job gets, one after the other, when it outlives what it was predicted.
LADDER = (
    *(minutes * MINUTE for minutes in (1, 5, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 5, 10, 20, 50, 100)),
)


class RecentOptions(BaseModel):
    """The options of :class:`Recent`."""

    model_config = ConfigDict(extra="forbid")

    jobs: int = Field(2, ge=1, le=1000, description="how many of the user's last jobs are looked at")


class Recent:
    """Predicts the mean runtime of the user's last two jobs."""

    Options = RecentOptions
    paper = "Tsafrir, Etsion and Feitelson, IEEE TPDS 18(6), 2007"

    def __init__(self, options: RecentOptions) -> None:
        self._jobs = options.jobs
        #: User -> seconds of the last jobs that ended.
        self._last: dict[str, deque[float]] = {}
        #: Job that has not ended -> its user; and when it started, later by what it was suspended.
        self._user: dict[str, str] = {}
        self._started: dict[str, float] = {}
        self._suspended: dict[str, float] = {}
        #: Running job -> rungs of the ladder that it was given.
        self._rungs: dict[str, int] = {}

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        self._last = {user: deque(last, maxlen=self._jobs) for user, last in saved["last"].items()}
        self._user, self._started = dict(saved["users"]), dict(saved["started"])
        self._suspended, self._rungs = dict(saved["suspended"]), dict(saved["rungs"])

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {
            "last": {user: list(last) for user, last in self._last.items()},
            "users": dict(self._user),
            "started": dict(self._started),
            "suspended": dict(self._suspended),
            "rungs": dict(self._rungs),
        }

    @hookimpl
    def observe(self, event: Event) -> None:
        if isinstance(event, JobSubmitted):
            self._user[event.job.id] = event.job.user
        elif isinstance(event, JobStarted):
            self._started[event.job_id] = event.time
        elif isinstance(event, JobEnded):
            self._ended(event.job_id, event.time)
        elif isinstance(event, JobRequeued):
            self._forget(event.job_id)
        elif isinstance(event, JobSuspended):
            self._suspended[event.job_id] = event.time
        elif isinstance(event, JobResumed):
            since = self._suspended.pop(event.job_id, event.time)
            if event.job_id in self._started:
                self._started[event.job_id] += event.time - since

    @hookimpl
    def predict_runtime(self, job: Job, state: State) -> float | None:
        if job.start_time is not None:
            return self._corrected(job, state)
        last = self._last.get(job.user)
        if last is None or len(last) < self._jobs:
            return None
        return min(max(sum(last) / len(last), 1.0), job.estimate)

    def why_predicted(self, job: Job) -> str:
        """What the prediction follows from, for a person."""
        last = self._last.get(job.user, ())
        ran = ", ".join(f"{seconds:.0f} s" for seconds in last)
        which = "job" if self._jobs == 1 else f"{self._jobs} jobs"
        mean = min(max(sum(last) / len(last), 1.0), job.estimate) if last else None
        if rungs := self._rungs.get(job.id, 0):
            times = "once" if rungs == 1 else f"{rungs} times"
            return f"it outlived the mean of its user's last {which} and was given more time {times}"
        if mean != job.expected_runtime:
            return f"the mean of its user's last {which} when it was submitted"
        return f"the mean of its user's last {which} ({ran})" + (
            ", and no more than its limit" if mean == job.estimate else ""
        )

    def _ended(self, job_id: str, time: float) -> None:
        user, started = self._user.pop(job_id, ""), self._started.pop(job_id, None)
        suspended = self._suspended.pop(job_id, None) if self._suspended else None
        self._rungs.pop(job_id, None)
        if started is None or not user:
            return
        last = self._last.get(user)
        if last is None:
            last = self._last[user] = deque(maxlen=self._jobs)
        last.append((time if suspended is None else suspended) - started)

    def _forget(self, job_id: str) -> None:
        """What was of one execution."""
        for known in (self._started, self._suspended, self._rungs):
            known.pop(job_id, None)

    def _corrected(self, job: Job, state: State) -> float:
        """What a running job is expected to run: as before, or further up the ladder if it outlived that."""
        assert job.start_time is not None
        run = state.now - job.start_time - job.paused
        expected, rung = job.expected_runtime, self._rungs.get(job.id, 0)
        while expected <= run and expected < job.estimate:
            expected = min(expected + LADDER[rung], job.estimate) if rung < len(LADDER) else job.estimate
            rung += 1
        self._rungs[job.id] = rung
        return expected
