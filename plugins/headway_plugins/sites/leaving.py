"""Running jobs that leave a site which closes, or has become too dear.

After the Wave Scheduler's three ways (D. Zhou, V. Lo: Wave Scheduler: Scheduling for Faster Turnaround Time
in Peer-Based Desktop Grid Systems, JSSPP 2005, section 4): *immediate* looks for another site once, *linger*
waits first, *adaptive* looks, waits, and looks again. Decisions:

- In the paper a job that finds no host fails. Here it runs on where it is: a site that closes starts no jobs,
  and ends none.
- While it lingers it runs on, and if its site is open again it stays.
- A job with the attribute ``saves`` gets a signal and is requeued when it has saved itself. A job that says
  ``checkpoint`` saves itself anyway; if it gives a number, so many seconds of its work may be lost. A job
  that says ``restartable`` loses all that it has done.
- Where migration handlers are enabled, each of these jobs is saved by them first (``Checkpoint``), and leaves
  once it is saved, if it still is to leave then. A job that no handler can save leaves as above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from headway.decisions import Checkpoint, Decision, Requeue, Signal
from headway.model.sites import CHECKPOINT, RESTARTABLE
from headway.report.quantities import duration
from headway.state import Job, State, Status
from headway.state.records import PoolState
from headway_plugins.sites.options import FollowOptions
from headway_plugins.sites.prospects import Prospect, saves, says, waits

_INF = float("inf")


def may_go(job: Job) -> bool:
    """Whether the job can be requeued while it runs."""
    return saves(job) is not None or says(job, RESTARTABLE, CHECKPOINT)


def lost(job: Job, now: float) -> float:
    """Seconds of work that a running job loses if it goes as it is."""
    done = job.done(now)
    if (seconds := saves(job)) is not None:
        return min(seconds, done)
    if says(job, CHECKPOINT):
        try:
            return min(float(job.attribute(CHECKPOINT)), done)
        except (TypeError, ValueError):
            return 0.0
    return done


class Leaving:
    """What becomes of running jobs whose site is to be left."""

    def __init__(self, options: FollowOptions, state: State, *, handlers: bool = False) -> None:
        """``handlers``: migration handlers can save jobs."""
        self._options = options
        self._handlers = handlers
        self._rng = np.random.default_rng(state.seed)
        #: Job -> when it looks for another site; infinity: no more.
        self._due: dict[str, float] = {}
        #: Job that saves itself -> when it has done so, and the pool that it is to go to.
        self._saving: dict[str, tuple[float, str]] = {}
        #: Jobs that a handler saves now; job -> when a handler has saved it; job -> why none did.
        self._asked: set[str] = set()
        self._saved: dict[str, float] = {}
        self._unsaved: dict[str, str] = {}
        #: Requeued job -> the pool that was found for it, and why it left.
        self.bound: dict[str, tuple[str, str]] = {}
        #: Requeued job -> seconds of its work that it loses, and that it keeps.
        self.work: dict[str, tuple[float, float]] = {}
        #: Why a running job stays although its site is to be left.
        self.said: dict[str, str] = {}

    def forget(self, job_id: str) -> None:
        """The job runs no more."""
        self._asked.discard(job_id)
        for known in (self._due, self._saving, self._saved, self._unsaved, self.said):
            known.pop(job_id, None)

    def is_saved(self, job_id: str, now: float) -> None:
        """A handler has saved the job."""
        if job_id in self._asked:
            self._asked.discard(job_id)
            self._saved[job_id] = self._due[job_id] = now

    def is_not_saved(self, job_id: str, why: str, now: float) -> None:
        """No handler has saved the job: it goes as it is, or stays."""
        if job_id in self._asked:
            self._asked.discard(job_id)
            self._unsaved[job_id] = why
            self._due[job_id] = now

    def waits(self, job: Job) -> bool:
        """Whether the job waits for nothing but a place to run."""
        return waits(job, requeued=job.id in self.bound)

    def saves(self, job: Job) -> bool:
        """Whether the job is saved before it leaves, by a handler or by itself."""
        by_handler = self._handlers and job.id not in self._unsaved
        return by_handler or saves(job) is not None

    def losing(self, job: Job, now: float) -> float:
        """Seconds of work that a running job would lose by leaving now."""
        if job.id in self._saved:
            return min(now - self._saved[job.id], job.done(now))
        return 0.0 if self._handlers and job.id not in self._unsaved else lost(job, now)

    def decide(
        self, state: State, to_leave: Callable[[PoolState], str], allowed: Callable[[Job], bool],
        find: Callable[[Job], Prospect | None],
    ) -> Iterator[Decision]:  # fmt: skip
        """Signals and requeues that are due.

        ``to_leave``: why a pool is to be left, "" if it is not; ``allowed``: whether a job may move;
        ``find``: where it could go now.
        """
        now = state.now
        for job_id, (time, pool) in list(self._saving.items()):
            if time <= now and (job := state.jobs.get(job_id)) is not None:
                del self._saving[job_id]
                yield self._requeue(job, pool, "it has saved itself", now)
        if self._options.when is None:
            return
        seen = set(self._saving)
        for pool_state in state.pools.values():
            why = to_leave(pool_state)
            if not why:
                continue
            for job in [entry[3] for entry in pool_state.domain.running]:
                if job.pool is pool_state and job.status is Status.RUNNING and not job.leaving:
                    seen.add(job.id)
                    busy = job.id in self._saving or job.id in self._asked
                    if may_go(job) and allowed(job) and not busy:
                        yield from self._look(state, job, why, find)
        for job_id in [job_id for job_id in self._due if job_id not in seen]:
            # Its site is open again.
            self.forget(job_id)

    def _look(
        self, state: State, job: Job, why: str, find: Callable[[Job], Prospect | None]
    ) -> Iterator[Decision]:
        """Look for another site if it is time to, and begin to leave."""
        now, when = state.now, self._options.when
        due = self._due.get(job.id)
        if due is None:
            due = self._due[job.id] = self._later(state, job) if when == "linger" else now
        if due > now:
            return
        losing = self.losing(job, now)
        if losing > self._options.most_lost and job.id not in self._saved:
            self._stays(state, job, f"{why}, and it would lose {duration(losing)} of its work")
            return
        found = find(job)
        if found is None:
            self._stays(state, job, f"{why}, and no other site can start it soon")
            return
        reason = f"{why}, and {found.site} can start it {_soon(found.start - now)}"
        seconds = None if job.id in self._saved else saves(job)
        if self._handlers and job.id not in self._saved and job.id not in self._unsaved:
            self._asked.add(job.id)
            yield Checkpoint(job.id, f"{reason}: it is to be saved first")
            return
        if seconds is None:
            yield self._requeue(job, found.pool.name, reason, now)
            return
        self._saving[job.id] = now + seconds, found.pool.name
        yield Signal(job.id, self._options.signal, reason=f"{reason}: it is to save itself")
        if seconds == 0:
            del self._saving[job.id]
            yield self._requeue(job, found.pool.name, reason, now)
        else:
            state.wake_at(now + seconds, job.pool)

    def _stays(self, state: State, job: Job, why: str) -> None:
        """It runs on, and perhaps looks again later; then a handler saves it anew."""
        why += f" (no handler saved it: {self._unsaved[job.id]})" if job.id in self._unsaved else ""
        fails = self._handlers or self.losing(job, state.now) <= self._options.most_lost
        again = self._later(state, job) if self._options.when == "adaptive" and fails else _INF
        self._due[job.id] = again
        more = f"; it looks again in {duration(again - state.now)}" if again < _INF else ""
        self.said[job.id] = f"{why}{more}"
        self._saved.pop(job.id, None)
        self._unsaved.pop(job.id, None)

    def _requeue(self, job: Job, pool: str, reason: str, now: float) -> Requeue:
        losing = self.losing(job, now)
        self.bound[job.id] = pool, reason
        self.work[job.id] = losing, job.done(now) - losing if self.saves(job) else 0.0
        self.forget(job.id)
        return Requeue(job.id, reason)

    def _later(self, state: State, job: Job) -> float:
        """When a job that lingers looks next."""
        low, high = self._options.linger
        due = state.now + low + (high - low) * float(self._rng.random())
        if due > state.now:
            state.wake_at(due, job.pool)
        return due


def _soon(seconds: float) -> str:
    return "now" if seconds <= 1 else f"in {duration(seconds)}"
