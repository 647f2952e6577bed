"""What a job may expect in a pool of a site: when it could start, and what its run would cost.

The expected start is counted in processors: the running jobs end as expected, and the jobs that wait there or
are on their way come first, each where it fits soonest. The first ``depth`` of them are planned one by one.
The work of all others is spread over the pool, behind which a further job begins. So the expected start costs
little and follows no particular policy. Jobs of other pools on the same nodes count only where they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from headway.model.site_hours import opens_and_closes
from headway.model.sites import Site, datasets_of
from headway.state import Job, State, Status
from headway.state.catalogue import Catalogue
from headway.state.obstacles import find_obstacle
from headway.state.records import PoolState
from headway_plugins.sites.tariffs import Tariff

_INF = float("inf")


@dataclass(frozen=True)
class Prospect:
    """What a job may expect in one pool. Times are absolute seconds."""

    pool: PoolState
    site: str
    #: When it is expected to start, with its data and within the site's hours; infinity: never.
    start: float
    #: Seconds until the site is open; 0: it is.
    opens_in: float
    #: Seconds from the start to the site's next closing; infinity: it stays open.
    open_for: float
    #: Seconds by which the job's limit goes beyond that.
    beyond: float
    #: Seconds to copy what it lacks there; infinity: that cannot come there.
    copying: float
    #: Means over its run; 0 where there is no tariff.
    price: float = 0.0
    carbon: float = 0.0


class _Plan:
    """The jobs that wait in a pool, in what is free there over time."""

    def __init__(self, state: State, pool: PoolState, coming: list[Job], depth: int) -> None:
        self.profile = state.pool_profile(pool)
        #: When each job that was planned is to start.
        self.starts: dict[str, float] = {}
        self.behind = 0.0
        waiting = [job for job in pool.domain.queue if job.pool is pool]
        for job in [*waiting, *coming]:
            if len(self.starts) < depth:
                self.take(job, pool)
            else:
                self.behind += job.processors * job.expected_runtime / max(pool.total, 1)

    def take(self, job: Job, pool: PoolState) -> None:
        """A further job waits there."""
        start = self.earliest(job, job.expected_runtime)
        self.starts[job.id] = start
        if start < _INF:
            self.profile.reserve(start, start + job.expected_runtime, job.processors)

    def earliest(self, job: Job, runtime: float) -> float:
        """When a job that is behind all others could start."""
        known = self.starts.get(job.id)
        if known is not None:
            return known
        return self.profile.earliest(job.processors, max(runtime, 1.0)) + self.behind


class Prospects:
    """What jobs may expect at one moment."""

    def __init__(
        self, state: State, prices: Mapping[str, Tariff], carbons: Mapping[str, Tariff], depth: int
    ) -> None:
        assert state.catalogue is not None
        self._state, self._depth = state, depth
        self._catalogue: Catalogue = state.catalogue
        self._prices, self._carbons = prices, carbons
        self._plans: dict[str, _Plan] = {}
        self._hours: dict[str, tuple[bool, float]] = {}
        self._coming: dict[str, list[Job]] | None = None

    # ------------------------------------------------------------------ sites

    def is_open(self, pool: PoolState) -> bool:
        """Whether the pool takes jobs, and its site's calendar has it open."""
        return pool.open and self.has_hours(self._catalogue.site_of(pool.name))

    def has_hours(self, site: str) -> bool:
        """Whether the site's calendar has it open now."""
        return self._now_open(site)[0]

    def _now_open(self, site: str) -> tuple[bool, float]:
        """Whether a site is open now, and when that changes (absolute seconds)."""
        known = self._hours.get(site)
        if known is None:
            known = self._hours[site] = self._open_at(site, self._state.now)
        return known

    def _open_at(self, name: str, time: float) -> tuple[bool, float]:
        site: Site | None = self._catalogue.sites.get(name)
        if site is None or not site.calendar or time == _INF:
            return True, _INF
        epoch = self._state.epoch
        is_open, until = opens_and_closes(site, time + epoch)
        return is_open, until - epoch

    # ------------------------------------------------------------------ jobs

    def why_not(self, job: Job, pool: PoolState) -> str:
        """Why a job cannot go to a pool; "" if it can."""
        if self._state.silent_since(pool.name) is not None:
            return "its cluster does not answer"
        if not self.is_open(pool):
            return "closed"
        obstacle = find_obstacle(self._state, msgspec.structs.replace(job, pool=pool))
        return "" if obstacle is None else obstacle.why

    def of(self, job: Job, pool: PoolState, kept: float = 0.0) -> Prospect:
        """What the job may expect in a pool: its own, or another one. ``kept``: seconds of its work that it
        need not do again."""
        state, site = self._state, self._catalogue.site_of(pool.name)
        now = state.now
        runtime, limit = max(job.expected_runtime - kept, 0.0), max(job.estimate - kept, 0.0)
        here = pool is job.pool
        copying = self.copying(job, site)
        if here and (job.obstacle is not None or job.refusal):
            start = _INF
        else:
            start = max(self._plan(pool).earliest(job, runtime), now + copying)
        is_open, changes = self._now_open(site)
        opens_in = 0.0 if is_open else changes - now
        if here and is_open and not pool.open:
            # Its batch system has closed it; until when is not known.
            start = opens_in = _INF
        start, closes = self._within_hours(site, start)
        open_for = closes - start if start < _INF else _INF
        run = (start if start < _INF else now) + state.epoch
        return Prospect(
            pool, site, start, opens_in, open_for, max(0.0, limit - open_for), copying,
            _mean(self._prices, site, run, runtime), _mean(self._carbons, site, run, runtime),
        )  # fmt: skip

    def copying(self, job: Job, site: str) -> float:
        """Seconds to copy what the job lacks at a site: all of it at the same time."""
        needs = datasets_of(job.description.attributes)
        if not needs:
            return 0.0
        catalogue = self._catalogue
        longest = 0.0
        for name in catalogue.missing(needs, site):
            source = catalogue.nearest(name, site) if name in catalogue.datasets else None
            if source is None or catalogue.store(site) is None:
                return _INF
            if (name, site) not in catalogue.copies and catalogue.datasets[name].size > catalogue.room(site):
                return _INF
            longest = max(longest, catalogue.seconds(name, source, site))
        return longest

    def sent(self, job: Job, pool: PoolState) -> None:
        """The job has left its queue and is on its way there: it waits behind the others."""
        self._plans.pop(job.pool.name, None)
        self._plan(pool).take(job, pool)

    def _within_hours(self, site: str, start: float) -> tuple[float, float]:
        """The first moment from ``start`` on at which the site is open, and when it closes then."""
        is_open, until = self._open_at(site, start)
        if is_open:
            return start, until
        return until, self._open_at(site, until)[1]

    def _plan(self, pool: PoolState) -> _Plan:
        plan = self._plans.get(pool.name)
        if plan is None:
            plan = _Plan(self._state, pool, self._on_their_way().get(pool.name, []), self._depth)
            self._plans[pool.name] = plan
        return plan

    def _on_their_way(self) -> dict[str, list[Job]]:
        """The jobs that are on their way to a pool, by its name."""
        if self._coming is None:
            self._coming = {}
            for job in self._state.jobs.values():
                if job.bound_for:
                    self._coming.setdefault(job.bound_for, []).append(job)
        return self._coming


def _mean(tariffs: Mapping[str, Tariff], site: str, begin: float, seconds: float) -> float:
    tariff = tariffs.get(site)
    return 0.0 if tariff is None else tariff.mean(begin, begin + seconds)


def saves(job: Job) -> float | None:
    """Seconds that a job needs to save itself when it is told to; None: it does not save itself."""
    said = job.attribute("saves")
    if isinstance(said, bool) or said is None:
        return None
    try:
        seconds = float(said)
    except (TypeError, ValueError):
        return None
    return seconds if 0 <= seconds < _INF else None


def says(job: Job, *names: str) -> bool:
    """Whether the job has one of these attributes, with any value but "no"."""
    return any(_yes(job.attribute(name)) for name in names)


def _yes(value: object) -> bool:
    return value is not None and value is not False and str(value).strip().lower() not in ("no", "false", "")


def waits(job: Job, *, requeued: bool = False) -> bool:
    """Whether the job waits for nothing but a place to run, so that it can be sent on. ``requeued``: it ran
    until now, so a begin time is the batch system's own for jobs that went back to the queue."""
    said = job.description
    return (
        job.status in (Status.PENDING, Status.WAITING)
        and not (job.held or job.bound_for or job.choices)
        and not (said.dependencies or said.reservation or said.array_id)
        and (said.begin_time is None or requeued)
    )
