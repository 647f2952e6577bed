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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from headway.decisions import Decision, Requeue, Signal
from headway.report.quantities import duration
from headway.state import Job, State, Status
from headway.state.records import PoolState
from headway_plugins.sites.options import FollowOptions
from headway_plugins.sites.prospects import Prospect, saves, says

_INF = float("inf")


def may_go(job: Job) -> bool:
    """Whether the job can be requeued while it runs."""
    return saves(job) is not None or says(job, "restartable", "checkpoint")


def lost(job: Job, now: float) -> float:
    """Seconds of work that a running job loses if it goes."""
    done = job.done(now)
    if (seconds := saves(job)) is not None:
        return min(seconds, done)
    if says(job, "checkpoint"):
        try:
            return min(float(job.attribute("checkpoint")), done)
        except (TypeError, ValueError):
            return 0.0
    return done


class Leaving:
    """What becomes of running jobs whose site is to be left."""

    def __init__(self, options: FollowOptions, state: State) -> None:
        self._options = options
        self._rng = np.random.default_rng(state.seed)
        #: Job -> when it looks for another site; infinity: no more.
        self._due: dict[str, float] = {}
        #: Job that saves itself -> when it has done so, and the pool that it is to go to.
        self._saving: dict[str, tuple[float, str]] = {}
        #: Requeued job -> the pool that was found for it, and why it left.
        self.bound: dict[str, tuple[str, str]] = {}
        #: Why a running job stays although its site is to be left.
        self.said: dict[str, str] = {}

    def forget(self, job_id: str) -> None:
        """The job runs no more."""
        for known in (self._due, self._saving, self.said):
            known.pop(job_id, None)

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
                yield self._requeue(job, pool, "it has saved itself")
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
                    if may_go(job) and allowed(job) and job.id not in self._saving:
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
        losing = lost(job, now)
        if losing > self._options.most_lost:
            self._due[job.id] = _INF
            self.said[job.id] = f"{why}, and it would lose {duration(losing)} of its work"
            return
        found = find(job)
        if found is None:
            again = self._later(state, job) if when == "adaptive" else _INF
            self._due[job.id] = again
            more = f"; it looks again in {duration(again - now)}" if again < _INF else ""
            self.said[job.id] = f"{why}, and no other site can start it soon{more}"
            return
        reason = f"{why}, and {found.site} can start it {_soon(found.start - now)}"
        seconds = saves(job)
        if seconds is None:
            yield self._requeue(job, found.pool.name, reason)
            return
        self._saving[job.id] = now + seconds, found.pool.name
        yield Signal(job.id, self._options.signal, reason=f"{reason}: it is to save itself")
        if seconds == 0:
            del self._saving[job.id]
            yield self._requeue(job, found.pool.name, reason)
        else:
            state.wake_at(now + seconds, job.pool)

    def _requeue(self, job: Job, pool: str, reason: str) -> Requeue:
        self.bound[job.id] = pool, reason
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
