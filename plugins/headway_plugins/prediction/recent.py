"""A job is predicted to run as long as its user's last two jobs did, on average.

D. Tsafrir, Y. Etsion, D. G. Feitelson: Backfilling Using System-Generated Predictions Rather Than User
Runtime Estimates. IEEE TPDS 18(6), 2007. The prediction serves planning alone: the user's estimate remains
the limit, and no prediction is beyond it. For a user with fewer ended jobs there is no answer, so the next
predictor is asked, and then the estimate counts: predictors are such a chain, in configured order.

A job that outlives its prediction gets 1 minute more, then 5, 15 and 30 minutes, 1, 2, 5, 10, 20, 50 and 100
hours, in turn and never beyond its estimate. Its pool is looked at when that happens, if a job
waits there that is not larger than what is free; so what is booked behind it is corrected before any job
starts.

Decisions: a job counts when it ends, however it ends, with the time from its last start on without what it
was suspended; a job that never ran does not. How good predictions are is judged by the same jobs, and by what
they were predicted before they started. What a job was predicted at its arrival holds until it starts:
later ends do not change it. What is known of users is kept over a restart, and so is what each job that is
there was predicted and was given since: it is not predicted again from what is known by then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationInfo, model_validator

from headway.events import Event, JobEnded, JobRequeued, JobResumed, JobStarted, JobSubmitted, JobSuspended
from headway.hookspecs import hookimpl
from headway.plugins import Traits
from headway.results import RunResult
from headway.state import Job, State
from headway.workload.accounting import Ended, history_of
from headway_plugins.prediction.measures import Measures

MINUTE, HOUR = 60.0, 3600.0

#: Seconds that a job gets, in turn, when it outlives what it was predicted.
LADDER = (
    *(minutes * MINUTE for minutes in (1, 5, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 5, 10, 20, 50, 100)),
)
#: Jobs of a user that had ended from which on it is told apart how good predictions are.
SIZES = (0, 1, 2, 10, 100)


class RecentOptions(BaseModel):
    """The options of :class:`Recent`."""

    model_config = ConfigDict(extra="forbid")

    jobs: int = Field(
        2, ge=1, le=1000, description="number of the user's last jobs whose runtimes are averaged"
    )
    history: Path | None = Field(
        None,
        description="a file with jobs from before the first start: the output of sacct -P with "
        "SLURM_TIME_FORMAT=%s, a PBS server's log or LSF's lsb.acct",
    )

    _history: list[Ended] = PrivateAttr(default_factory=list)

    @model_validator(mode="after")
    def _read(self, info: ValidationInfo) -> RecentOptions:
        if self.history is not None:
            self._history = history_of(self.history, info.context)
        return self

    @property
    def ended(self) -> list[Ended]:
        """The jobs of ``history`` that ran, by their ends."""
        return self._history


class _User(msgspec.Struct):
    """A user with ended jobs."""

    #: Seconds of the last of them; how many there were.
    last: deque[float]
    ended: int


class _Known(msgspec.Struct):
    """A job that has not ended."""

    user: str
    #: When it started, later by what it was suspended; since when it is suspended. Absolute seconds.
    started: float | None = None
    suspended: float | None = None
    #: Rungs of the ladder that it was given.
    rungs: int = 0
    #: Whether this plugin was asked about it, and what it said last (seconds; None: too little was known).
    asked: bool = False
    answer: float | None = None
    #: What it said before the job started, how many of the user's jobs had ended then, and the estimate.
    first: float | None = None
    history: int = 0
    estimate: float = 0.0


class Recent:
    """Predicts the mean runtime of the user's last two jobs."""

    Options = RecentOptions
    traits = Traits(
        observes=(JobSubmitted, JobEnded, JobStarted, JobRequeued, JobSuspended, JobResumed),
        paper="Tsafrir, Etsion and Feitelson, IEEE TPDS 18(6), 2007",
    )

    def __init__(self, options: RecentOptions) -> None:
        self._jobs = options.jobs
        self._users: dict[str, _User] = {}
        self._measures = Measures(SIZES)
        for ended in options.ended:
            if ended.user and ended.seconds > 0:
                self._note_end(ended.user, ended.seconds)
        #: Jobs that have not ended.
        self._known: dict[str, _Known] = {}
        #: Jobs of an earlier run of the daemon that were not seen again yet: their predictions hold.
        self._kept: set[str] = set()

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        counts = saved.get("counts", {})
        for user, last in saved["last"].items():
            self._users[user] = _User(deque(last, maxlen=self._jobs), counts.get(user, len(last)))
        self._measures.restore(saved.get("measures", {}))
        self._known = {job_id: _Known(*known) for job_id, known in saved["jobs"].items()}
        self._kept = {job_id for job_id, known in self._known.items() if known.asked}

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {
            "last": {user: list(known.last) for user, known in self._users.items()},
            "counts": {user: known.ended for user, known in self._users.items()},
            "jobs": {job_id: list(msgspec.structs.astuple(known)) for job_id, known in self._known.items()},
            "measures": self._measures.saved(),
        }

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"recent": lambda result: self.figures()}

    def figures(self) -> dict[str, Any]:
        """How many jobs were predicted and how well, over all and by how many of the user's had ended."""
        return self._measures.figures()

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, JobSubmitted):
            if event.job.id not in self._known:
                self._known[event.job.id] = _Known(event.job.user)
        elif isinstance(event, JobEnded):
            if (known := self._known.pop(event.job_id, None)) is not None:
                self._ended(known, event.time)
        elif isinstance(event, JobStarted):
            known = self._known.get(event.job_id)
            if known is not None and (known.started is None or event.time > known.started):
                # Otherwise it is told again, and what it was suspended since is known.
                known.started, known.suspended = event.time, None
        elif (
            isinstance(event, JobRequeued | JobSuspended | JobResumed)
            and (known := self._known.get(event.job_id)) is not None
        ):
            _note(known, event)

    @hookimpl
    def predict_runtime(self, job: Job, state: State) -> float | None:
        job_id, user = job.id, job.description.user
        known = self._known.get(job_id)
        if known is None or known.user != user:
            known = self._known[job_id] = _Known(user)
            self._kept.discard(job_id)
        if job.start_time is not None:
            return self._corrected(job, known, state)
        if self._kept and job.id in self._kept:
            # The daemon was started anew: what was told then was not from what is known now.
            self._kept.discard(job.id)
            return None if known.answer is None else min(known.answer, job.estimate)
        of = self._users.get(user)
        known.asked = True
        known.history = 0 if of is None else of.ended
        if of is None or len(of.last) < self._jobs:
            known.answer = known.first = None
            return None
        mean = sum(of.last) / self._jobs
        if mean < 1.0:
            mean = 1.0
        known.estimate = job.estimate
        known.answer = known.first = answer = mean if mean < job.estimate else job.estimate
        return answer

    @hookimpl
    def explain(self, job: Job, question: str) -> str | None:
        """What the prediction follows from."""
        return self._why_predicted(job) if question == "prediction" else None

    def _why_predicted(self, job: Job) -> str:
        last = self._users[job.user].last if job.user in self._users else ()
        ran = ", ".join(f"{seconds:.0f} s" for seconds in last)
        which = "job" if self._jobs == 1 else f"{self._jobs} jobs"
        mean = min(max(sum(last) / len(last), 1.0), job.estimate) if last else None
        if (known := self._known.get(job.id)) is not None and (rungs := known.rungs):
            times = "once" if rungs == 1 else f"{rungs} times"
            return f"it outlived the mean of its user's last {which} and was given more time {times}"
        if mean != job.expected_runtime:
            return f"the mean of its user's last {which} when it was submitted"
        return f"the mean of its user's last {which} ({ran})" + (
            ", and no more than its limit" if mean == job.estimate else ""
        )

    def _ended(self, known: _Known, time: float) -> None:
        if known.started is None:
            return
        seconds = (time if known.suspended is None else known.suspended) - known.started
        if known.asked and seconds > 0:
            self._measures.count(known.history, seconds, known.first, known.estimate)
        if known.user:
            self._note_end(known.user, seconds)

    def _note_end(self, user: str, seconds: float) -> None:
        of = self._users.get(user)
        if of is None:
            of = self._users[user] = _User(deque(maxlen=self._jobs), 0)
        of.last.append(seconds)
        of.ended += 1

    def _corrected(self, job: Job, known: _Known, state: State) -> float:
        """What a running job is expected to run: as before, or further up the ladder if it outlived that."""
        assert job.start_time is not None
        run = state.now - job.start_time - job.paused
        expected, rung, estimate = job.expected_runtime, known.rungs, job.estimate
        if expected >= estimate and known.answer is not None:
            # Its limit was changed, which tells nothing of how long it runs.
            expected = min(known.answer, estimate)
        while expected <= run and expected < estimate:
            expected = min(expected + LADDER[rung], estimate) if rung < len(LADDER) else estimate
            rung += 1
        known.rungs, known.answer = rung, expected
        return expected


def _note(known: _Known, event: JobRequeued | JobSuspended | JobResumed) -> None:
    """What happened to a job while it was on nodes."""
    if isinstance(event, JobRequeued):
        known.started, known.suspended, known.rungs = None, None, 0
    elif isinstance(event, JobSuspended):
        known.suspended = event.time
    elif known.suspended is not None:
        if known.started is not None:
            known.started += event.time - known.suspended
        known.suspended = None
