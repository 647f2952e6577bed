"""Running jobs that are slowed when a cap falls, and that get their frequency back."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Set
from typing import Any

import msgspec

from headway.decisions import Decision, SetFrequency, SetTimeLimit
from headway.events import JobChanged, JobStarted
from headway.state import Job, PoolState, State, Status
from headway_plugins.energy.meter import PowerMeter
from headway_plugins.energy.pool_caps import ROUNDING, PoolCaps, factor_of, kind_of

_INF = float("inf")
#: Seconds after which a frequency that could not be set is tried again.
_RETRY = 60.0
#: Seconds by which a batch system may round a limit.
_LIMITS_ALIKE = 60.0


class Time(msgspec.Struct):
    """What is left of the limit of a job that was slowed."""

    #: Seconds of its execution when this was booked.
    elapsed: float
    #: Seconds that its limit left it then at the frequency that it had before.
    left: float
    #: How many times as long it takes since.
    factor: float
    #: The limit that it has for it.
    limit: float


class SlowedJobs:
    """Which running jobs were slowed, and what is left of their limits."""

    def __init__(
        self, caps: PoolCaps, meter: PowerMeter, counts: MutableMapping[str, int], *, can_limit: bool
    ) -> None:
        """``counts``: of the metrics; ``can_limit``: limits can be lengthened."""
        self._caps = caps
        self._meter = meter
        self._counts = counts
        self._can_limit = can_limit
        #: Running jobs that we slowed -> the frequency that they had.
        self._slowed: dict[str, float | None] = {}
        #: Of these jobs, and of jobs that have their frequency back: what is left of their limits.
        self._times: dict[str, Time] = {}
        #: Jobs whose frequency could not be set -> when it is tried again.
        self._not_before: dict[str, float] = {}

    def saved(self) -> dict[str, Any]:
        """What a successor must know."""
        return {
            "slowed": dict(self._slowed),
            "times": {job: [t.elapsed, t.left, t.factor, t.limit] for job, t in self._times.items()},
        }

    def restore(self, saved: dict[str, Any]) -> None:
        self._slowed.update(saved["slowed"])
        self._times.update({job: Time(*values) for job, values in saved["times"].items()})

    def gone(self, job_id: str) -> None:
        """The job runs no more."""
        for about in (self._slowed, self._times, self._not_before):
            about.pop(job_id, None)

    def started(self, event: JobStarted, state: State) -> None:
        job = state.jobs.get(event.job_id)
        if event.job_id in self._slowed and job is not None and job.frequency is None:
            # The job began anew while headway did not look.
            del self._slowed[job.id]
            self._times.pop(job.id, None)

    def changed(self, event: JobChanged) -> None:
        known = self._times.get(event.job.id)
        if known is not None and abs(event.job.request.walltime - known.limit) > _LIMITS_ALIKE:
            # Its limit was changed without headway: it is what the job is entitled to now.
            del self._times[event.job.id]

    def not_set(self, job_id: str, time: float, state: State) -> None:
        """A frequency could not be set: that is tried again later."""
        job = state.jobs.get(job_id)
        if job is None:
            return
        self._not_before[job_id] = time + _RETRY
        state.wake_at(time + _RETRY, job.pool)
        if job_id in self._slowed and job.frequency == self._slowed[job_id]:
            del self._slowed[job_id]

    @staticmethod
    def _youngest_last(pool: PoolState, state: State) -> list[Job]:
        """Jobs that run in the pool, the oldest first."""
        running = Status.RUNNING
        jobs = [job for job in state.running_in(pool) if job.status is running]
        return sorted(jobs, key=lambda job: (job.start_time, job.seq))

    def slow_down(self, pool: PoolState, cap: float, state: State) -> list[Decision]:
        meter, name, allowed = self._meter, pool.name, cap * (1 + ROUNDING)
        decisions: list[Decision] = []
        reason = f"the power cap of pool {name!r} is {cap:.0f} W"
        for job in reversed(self._youngest_last(pool, state)):
            if meter.watts[name] <= allowed:
                break
            before, levels = meter.frequency(job), kind_of(job.placement, job, state).levels
            slowest = levels[-1].frequency
            if (before is not None and before <= slowest) or len(levels) < 2:
                continue
            if self._not_before and self._not_before.get(job.id, -_INF) > state.now:
                continue
            room = allowed - meter.watts[name] + meter.of(job.id).get(name, 0.0)
            chosen = slowest
            if meter.added(job, job.placement, slowest).get(name, 0.0) <= room:
                for level in levels[1:]:
                    slower = before is None or level.frequency < before
                    if slower and meter.added(job, job.placement, level.frequency).get(name, 0.0) <= room:
                        chosen = level.frequency
                        break
            meter.order(job, chosen)
            self._slowed.setdefault(job.id, before)
            self._counts["running_slowed"] += 1
            decisions.append(SetFrequency(job.id, chosen, reason))
            decisions.extend(self._more_time(job, before, chosen, state))
        return decisions

    def _more_time(self, job: Job, before: float | None, after: float, state: State) -> list[Decision]:
        """The limit that the rest of a run needs at its new frequency, if that is more than it has."""
        if not self._can_limit or job.start_time is None:
            return []
        elapsed = state.now - job.start_time - job.paused
        left = self._left(job, before, elapsed, state)
        factor = factor_of(job, job.placement, self._slowed[job.id], after, state)
        if left <= 0 or factor <= 1:
            return []
        limit = max(elapsed + left * factor, job.estimate)
        self._times[job.id] = Time(elapsed, left, factor, limit)
        if limit <= job.estimate * (1 + ROUNDING):
            return []
        return [SetTimeLimit(job.id, limit, "its frequency is lowered by the power cap")]

    def _left(self, job: Job, now: float | None, elapsed: float, state: State) -> float:
        """Seconds that the job's limit leaves it at the frequency that it had before we slowed it."""
        known = self._times.get(job.id)
        if known is not None:
            return known.left - (elapsed - known.elapsed) / known.factor
        if now == self._slowed[job.id]:
            return job.estimate - elapsed
        factor = factor_of(job, job.placement, self._slowed[job.id], now, state)
        return (job.estimate - elapsed) / factor

    def give_back(self, delayed: Iterable[str], state: State) -> list[Decision]:
        """Give slowed jobs their frequency back as far as the cap allows and no start waits for the power.

        ``delayed``: jobs whose start the cap delays.
        """
        if not self._slowed:
            return []
        waiting = {
            state.jobs[job_id].pool.name
            for job_id in delayed
            if job_id in state.jobs and state.jobs[job_id].status in (Status.PENDING, Status.STARTING)
        }
        decisions: list[Decision] = []
        for pool in state.pools.values():
            full = self._meter.watts[pool.name] >= self._caps.of(pool.name, state)
            if not full and pool.name not in waiting:
                decisions.extend(self._speed_up(pool, state, waiting))
        return decisions

    def _speed_up(self, pool: PoolState, state: State, waiting: Set[str]) -> list[Decision]:
        """``waiting``: pools that leave the power to starts."""
        meter = self._meter
        decisions: list[Decision] = []
        reason = f"the power cap of pool {pool.name!r} leaves room"
        slowed = [
            job for name in self._slowed if (job := state.jobs.get(name)) is not None and job.pool is pool
        ]
        for job in sorted(slowed, key=lambda job: (job.start_time or 0.0, job.seq)):
            if job.status is not Status.RUNNING or self._not_before.get(job.id, -_INF) > state.now:
                continue
            before, drawn = self._slowed[job.id], meter.of(job.id)
            added = meter.added(job, job.placement, before)
            more = {name: watts - drawn.get(name, 0.0) for name, watts in added.items()}
            if not self._caps.fits(more, meter.watts, state) or not waiting.isdisjoint(more):
                continue
            full = kind_of(job.placement, job, state).levels[0].frequency
            elapsed = state.now - (job.start_time or 0.0) - job.paused
            known = self._times.get(job.id)
            if known is not None:
                self._times[job.id] = Time(elapsed, self._left(job, None, elapsed, state), 1.0, known.limit)
            hertz = before if before is not None else full
            meter.order(job, hertz)
            del self._slowed[job.id]
            self._counts["running_restored"] += 1
            decisions.append(SetFrequency(job.id, hertz, reason))
        return decisions
