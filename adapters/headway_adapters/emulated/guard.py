"""The check that every start passes, wherever it comes from: it refuses what real systems refuse, too.

The scheduler has a guard of its own (:mod:`headway.state.guard`), which goes by expected runtimes. The
machine promises nothing on a guess: it goes by limits.
"""

from __future__ import annotations

from collections.abc import Sequence

from headway.errors import StateError
from headway.model import (
    FOR_JOB,
    JobDescription,
    Placement,
    PoolBounds,
    PoolDescription,
    Reservation,
)
from headway.resources.profile import Profile, next_after
from headway_adapters.emulated.dependencies import Dependencies
from headway_adapters.emulated.execution import BACKGROUND, FOREGROUND, Execution
from headway_adapters.emulated.faults import LicenceChange
from headway_adapters.emulated.licences import Licences
from headway_adapters.emulated.machine import Machine
from headway_adapters.emulated.reservations import Reservations


class Guard:
    """Says why a job may not start now."""

    def __init__(
        self,
        machine: Machine,
        reservations: Reservations,
        dependencies: Dependencies,
        licence_changes: list[LicenceChange],
    ) -> None:
        self._machine = machine
        #: How much there is of each.
        self.licences = Licences(machine, reservations, self._inside, licence_changes)
        self._reservations = reservations
        self._dependencies = dependencies
        #: See :attr:`Dependencies.awaited`.
        self.awaited = dependencies.awaited
        self._bounds = {pool.name: pool.bounds for pool in machine.cluster.pools}
        self._closed = {pool.name for pool in machine.cluster.pools if not pool.open}

    def describe_pool(self, pool: PoolDescription) -> None:
        """A pool of nodes has other bounds, or was opened or closed."""
        self._bounds[pool.name] = pool.bounds
        if pool.open:
            self._closed.discard(pool.name)
        else:
            self._closed.add(pool.name)

    def refusal(
        self, job: JobDescription, placement: Placement, tier: str = FOREGROUND, pool: str = ""
    ) -> str:
        """Why a job that waits may not start on these nodes now; "" if it may. ``pool``: the pool in which it
        starts, if it was sent to several."""
        if pool and pool not in job.pools:
            return f"job {job.id} was sent to {', '.join(job.pools)}, not to {pool}"
        if job.held:
            return f"job {job.id} is held"
        if job.begin_time is not None and job.begin_time > self._machine.now:
            return f"job {job.id}: its begin time {job.begin_time:.0f} has not come"
        if job.dependencies and (unmet := self._dependencies.unmet(job)):
            return f"job {job.id} waits for " + ", ".join(
                f"job {each.job_id} ({each.kind})" if each.job_id else "its namesakes" for each in unmet
            )
        pool = pool or job.pool or self._machine.only
        bounds = self._bounds.get(pool)
        if bounds is not None and (beyond := _beyond(job, pool, bounds)):
            return beyond
        if full := self.no_room(job, placement, tier, pool):
            return full
        if job.request.licences and (lacking := self.licences.lacking(job)):
            return lacking
        if self._closed and pool in self._closed:
            return f"pool {pool!r} is closed"
        if job.reservation or self._reservations.kept:
            return self._breaks(job, placement, pool)
        return ""

    def no_room(self, job: JobDescription, placement: Placement, tier: str, pool: str = "") -> str:
        """Why a job cannot have these processors in this tier; "" if it can."""
        machine = self._machine
        pool = pool or job.pool or machine.only
        free = machine.free.get(pool)
        if tier != FOREGROUND and tier != BACKGROUND:
            return f"job {job.id}: there is no tier {tier!r}"
        if free is not None:
            if tier != FOREGROUND:
                free = self._free_behind(pool)
            if job.request.processors > free:
                return f"{job.request.processors} processors asked for, {free} free"
            return ""
        nodes = machine.nodes
        try:
            (nodes.guard if tier == FOREGROUND else nodes.guard_behind)(job.request, placement, pool)
        except StateError as error:
            return str(error)
        return ""

    def _free_behind(self, pool: str) -> int:
        """Processors of a flat pool that no job has in the background."""
        machine = self._machine
        total = next(each.processors for each in machine.cluster.pools if each.name == pool)
        return total - sum(
            execution.job.request.processors
            for execution in machine.running.values()
            if execution.tier == BACKGROUND and machine.pool_of(execution) == pool
        )

    # ------------------------------------------------------------------ reservations

    def _breaks(self, job: JobDescription, placement: Placement, pool: str) -> str:
        """Why the job would break a reservation, its own or another; "" if it would not."""
        now, named = self._machine.now, job.reservation
        own = self._reservations.kept.get(named) if named else None
        if named:
            if own is None:
                return f"job {job.id} asks for reservation {named!r}, which does not exist"
            if own.job_id not in ("", job.id):
                return f"reservation {named!r} is kept for job {own.job_id} alone"
            if not own.start <= now < own.end:
                return f"job {job.id} would run outside the time of reservation {named}"
        end = now + job.request.walltime
        if pool in self._machine.free:
            return self._breaks_flat(job, pool, own, end)
        if (
            own is not None
            and not own.only_licences
            and (strange := [node for node, _ in placement if node not in own.nodes])
        ):
            return f"node {strange[0]} is not in reservation {named}, which job {job.id} asks for"
        broken = self._machine.nodes.broken(placement, now, end, self._inside(job))
        return f"job {job.id} would break reservation {broken.id} on its nodes" if broken is not None else ""

    def _breaks_flat(self, job: JobDescription, pool: str, own: Reservation | None, end: float) -> str:
        machine, processors = self._machine, job.request.processors
        if own is not None and not own.only_licences:
            used = sum(
                execution.job.request.processors
                for execution in machine.running.values()
                if self._inside(execution.job) == own.id
            )
            if processors > own.processors - used:
                return f"job {job.id} does not fit in what reservation {own.id} has left"
            if end <= own.end:
                return ""
            others = self._of_pool(pool, own.end, end)
            if self._profile(pool, others).minimum(own.end, end) < processors:
                return f"job {job.id} would run on after reservation {own.id} into another one"
            return ""
        inside = self._inside(job)
        ahead = [each for each in self._of_pool(pool, machine.now, end) if each.id != inside]
        if ahead and self._profile(pool, ahead).minimum(machine.now, end) < processors:
            return f"job {job.id} would break reservation {', '.join(each.id for each in ahead)}"
        return ""

    def _inside(self, job: JobDescription) -> str:
        """The reservation that takes nothing from the job: the reservation that it names, or that is kept for
        it."""
        if job.reservation:
            return job.reservation
        kept = self._reservations.kept.get(FOR_JOB + job.id)
        return kept.id if kept is not None and kept.ours else ""

    def _of_pool(self, pool: str, start: float, end: float) -> list[Reservation]:
        """Reservations that take processors of a flat pool during [start, end), by their start."""
        found = [
            each
            for each in self._reservations.kept.values()
            if each.start < end and each.end > start and (each.pool or self._machine.only) == pool
        ]
        return sorted(found, key=lambda each: (each.start, each.id))

    def _profile(self, pool: str, reservations: Sequence[Reservation]) -> Profile:
        """Free processors of a flat pool over time beside these reservations, if every job runs to its
        limit."""
        machine, now = self._machine, self._machine.now
        running = sorted(
            (_latest_end(execution, now), execution.job.request.processors, self._inside(execution.job))
            for execution in machine.running.values()
            if machine.pool_of(execution) == pool and execution.tier == FOREGROUND
        )
        profile = Profile.of_releases(now, machine.free[pool], ((end, size) for end, size, _ in running))
        spans = []
        for reservation in reservations:
            start = max(reservation.start, now)
            spans.append((start, reservation.end, reservation.processors))
            # What runs on what is reserved, and what it leaves is kept again.
            spans.extend(
                (start, min(end, reservation.end), -size)
                for end, size, inside in running
                if inside == reservation.id
            )
        profile.reserve_all(spans)
        return profile


def _beyond(job: JobDescription, pool: str, bounds: PoolBounds) -> str:
    """Why the job is too long for the pool; "" if it is not."""
    longest = bounds.of(job.qos).max_walltime
    if not 0 < longest < job.request.walltime:
        return ""
    return f"job {job.id} asks for {job.request.walltime:.0f} s, pool {pool!r} allows {longest:.0f} s"


def _latest_end(execution: Execution, now: float) -> float:
    """When an execution reaches its limit at the latest, if it is not suspended; later than now."""
    since = now if execution.suspended else execution.booked_at
    return max(since + execution.limit - execution.consumed, next_after(now))
