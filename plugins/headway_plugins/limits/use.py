"""What jobs have of what is limited, and how much of it each holder has together."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from headway.state import Barrier, Job
from headway_plugins.accounts.amounts import amount
from headway_plugins.accounts.usage import Decaying
from headway_plugins.limits.rules import Amounts

#: Measures in the words of messages.
UNITS = {
    "jobs": "running jobs",
    "processors": "processors",
    "nodes": "nodes",
    "memory": "GiB of memory",
    "processor_minutes": "processor-minutes that are left to run",
    "budget": "processor-minutes, used and still to run,",
    "wall_minutes": "minutes of running jobs, past and still to come,",
    "walltime": "seconds of walltime",
}
RESOURCE = "resource:"
MINUTES = "processor_minutes"
BUDGET = "budget"
WALL = "wall_minutes"
#: What is used up.
SPENT = (BUDGET, WALL)
#: What changes as time passes.
TIMED = frozenset({MINUTES, *SPENT})
#: What sums of sizes may be wrong by.
_ROUNDING = 1e-6


def asked(job: Job, measure: str) -> float:
    """What the job adds to a measure (of the largest job's: has), by what it asks for."""
    if measure == "jobs":
        return 1.0
    if measure == "processors":
        return float(job.processors)
    if measure == "nodes":
        return float(len(job.placement) or max(job.request.nodes, 1))
    if measure == "walltime":
        return job.estimate
    if measure in TIMED:
        return rate(job, measure) * job.estimate / 60.0
    return amount(job.request, measure.removeprefix(RESOURCE), job.processors)


def rate(job: Job, measure: str) -> float:
    """How much the job adds in a minute to a measure that changes as time passes."""
    return 1.0 if measure == WALL else float(job.processors)


def unit(measure: str) -> str:
    """The measure in words."""
    return UNITS.get(measure) or measure.removeprefix(RESOURCE)


def limits_of(amounts: Amounts) -> tuple[dict[str, float], dict[str, float]]:
    """Measure -> limit: of all jobs that run, and of a single job."""
    together = {
        name: float(value)
        for name in ("jobs", "processors", "nodes", "memory", MINUTES, *SPENT)
        if (value := getattr(amounts, name)) is not None
    }
    together |= _of_resources(amounts.resources)
    largest = amounts.largest
    single = {
        name: float(value)
        for name in ("processors", "nodes", "memory", "walltime", MINUTES)
        if (value := getattr(largest, name)) is not None
    }
    single |= _of_resources(largest.resources)
    return together, single


def _of_resources(limits: Mapping[str, float | None]) -> dict[str, float]:
    """Measure -> limit of generic resources that have a limit."""
    return {f"{RESOURCE}{name}": value for name, value in limits.items() if value is not None}


def _highest(limit: float) -> float:
    """Above which a sum is over a limit."""
    return limit + _ROUNDING * max(limit, 1.0)


class Ruled(NamedTuple):
    """Measures that another holder decides about."""

    together: frozenset[str] = frozenset()
    single: frozenset[str] = frozenset()


UNRULED = Ruled()


class Factors(NamedTuple):
    """What a minute of a job counts for, by its QOS (Slurm's UsageFactor); 1 where nothing is said."""

    minutes: Mapping[str, float] = {}
    #: Whose jobs count so for the time that they ask for as well (UsageFactorSafe), and not only once they
    #: run.
    safe: Collection[str] = ()

    def of(self, job: Job) -> float:
        """Of a job that runs."""
        return self.minutes.get(job.description.qos, 1.0)


UNSCALED = Factors()


#: The room of a holder that may have no further job.
_NONE = -math.inf

#: What a job counts for: its processors where nothing else is limited but jobs, else measure by measure.
Added = int | Mapping[str, float]


class Holder:
    """A user, an account or another value with limits: what it may have, and what it has."""

    __slots__ = (
        "_barriers", "_factors", "_have", "_most", "_most_jobs", "_most_processors", "_running", "_use",
        "jobs", "key", "label", "largest", "limits", "plain", "room", "single", "spent",
    )  # fmt: skip

    def __init__(
        self,
        key: tuple[int, tuple[str, ...]],
        label: str,
        amounts: Amounts,
        half_life: float | None = None,
        factors: Factors = UNSCALED,
    ) -> None:
        """``half_life``: in so many seconds what was used up counts half; None: it stays."""
        self.key = key
        self._factors = factors
        self.label = label
        self.limits, self.single = limits_of(amounts)
        self._most = {name: _highest(limit) for name, limit in self.limits.items()}
        #: Only jobs and processors are limited, so :attr:`room` says all.
        self.plain = not self.single and not self.limits.keys() - {"jobs", "processors"}
        #: What is in use, of what does not change as time passes; a plain holder has jobs and processors.
        self._use = dict.fromkeys(self.limits, 0.0)
        self._running = self._have = 0
        self._most_jobs = self._most.get("jobs", math.inf)
        self._most_processors = self._most.get("processors", math.inf)
        #: Of a plain holder: the most processors that the next job may have; -inf: no further job may start.
        #: Any other holder has -inf and must be asked.
        self.room = _NONE
        #: Of a plain holder: the most that a job may have at all; of any other holder -inf.
        self.largest = -math.inf
        if self.plain:
            self.largest = self._most_processors if self._most_jobs >= 1.0 else 0.0
            self.more(0, 0)
        #: Of a plain holder, by what is reached and the processors that a job asks for.
        self._barriers: dict[tuple[str, int], Barrier] = {}
        #: The jobs that run, where minutes that are left count.
        self.jobs: dict[str, Job] = {}
        #: What was used of what is used up.
        self.spent = {measure: Decaying(half_life) for measure in SPENT if measure in self.limits}

    def more(self, jobs: int, processors: int) -> None:
        """Of a plain holder: so many jobs more run, with so many processors together; below 0: fewer."""
        self._running = running = self._running + jobs
        self._have = have = self._have + processors
        self.room = _NONE if running + 1.0 > self._most_jobs else self._most_processors - have

    def add(self, job: Job, since: float) -> Added:
        """The job runs; what it counts for. ``since`` then it uses up."""
        if self.plain:
            self.more(1, job.processors)
            return job.processors
        added = {}
        for measure, spent in self.spent.items():
            spent.begin(job.id, 0, self._rate(job, measure) / 60.0, since)
        for measure in self.limits:
            if measure in TIMED:
                self.jobs[job.id] = job
            else:
                added[measure] = asked(job, measure)
                self._use[measure] += added[measure]
        return added

    def take_off(self, job: Job, added: Added, now: float) -> None:
        """It runs no longer."""
        if isinstance(added, int):
            self.more(-1, -added)
            return
        for spent in self.spent.values():
            spent.end(job.id, now)
        for measure, value in added.items():
            self._use[measure] -= value
        self.jobs.pop(job.id, None)

    def _rate(self, job: Job, measure: str) -> float:
        """How much a job that runs adds in a minute to a measure that changes as time passes."""
        return rate(job, measure) * self._factors.of(job)

    def _asked(self, job: Job, measure: str) -> float:
        """What a job that waits would add to what is in use."""
        wanted = asked(job, measure)
        if measure in TIMED and job.description.qos in self._factors.safe:
            wanted *= self._factors.of(job)
        return wanted

    def used(self, measure: str, now: float) -> float:
        """What is in use."""
        if measure not in TIMED:
            return self._in_use(measure)
        to_run = sum(self._rate(job, measure) * left(job, now) for job in self.jobs.values()) / 60.0
        spent = self.spent.get(measure)
        return to_run if spent is None else to_run + float(spent.at(now, 1)[0])

    def _in_use(self, measure: str) -> float:
        if self.plain:
            return self._running if measure == "jobs" else self._have
        return self._use[measure]

    def too_large(self, job: Job, ruled: Ruled = UNRULED) -> str:
        """Why the job may never run as it is; "" if it may. ``ruled``: what another holder decides about."""
        if self.plain and job.processors <= self.largest:
            return ""
        for limits, others in zip((self.single, self.limits), (ruled.single, ruled.together), strict=True):
            for measure, limit in limits.items():
                wanted = asked(job, measure) if limits is self.single else self._asked(job, measure)
                if wanted > _highest(limit) and measure not in others:
                    scope = "one job of " if limits is self.single else ""
                    return (
                        f"it asks for {wanted:g} {unit(measure)}, and the limit of {scope}{self.label} is "
                        f"{limit:g}"
                    )
        return ""

    def over(self, job: Job, now: float, ruled: Ruled = UNRULED) -> str:
        """The measure of which the job would use too much; "" if there is none."""
        if self.plain and not ruled.together:
            if job.processors <= self.room:
                return ""
            return "jobs" if self.room == _NONE else "processors"
        for measure, most in self._most.items():
            if self.used(measure, now) + self._asked(job, measure) > most and measure not in ruled.together:
                return measure
        return ""

    def has_room(self, now: float) -> Callable[[Job], bool]:
        """Whether a job may start under this holder's limits; it holds until a job starts or ends."""
        return lambda job: not self.over(job, now)

    def reached(self, processors: int) -> Barrier:
        """The barrier of a job of so many processors at a plain holder that has no room for it."""
        measure = "jobs" if self.room == _NONE else "processors"
        barrier = self._barriers.get((measure, processors))
        if barrier is None:
            adds = 1.0 if measure == "jobs" else float(processors)
            # What is in use changes while jobs wait.
            barrier = Barrier(lambda: self._why(measure, self._in_use(measure), adds), self.key)
            self._barriers[measure, processors] = barrier
        return barrier

    def why(self, job: Job, measure: str, now: float) -> str:
        """The limit that is in the job's way, for a person."""
        return self._why(measure, self.used(measure, now), self._asked(job, measure))

    def _why(self, measure: str, used: float, adds: float) -> str:
        return (
            f"the limit of {self.limits[measure]:g} {unit(measure)} of {self.label} is reached: "
            f"{used:g} in use, it would add {adds:g}"
        )

    def full(self) -> bool:
        """Whether not even the smallest job may start."""
        if self.plain:
            return self.room < 1.0
        return any(
            self._use[measure] + 1 > self.limits[measure] + _ROUNDING
            for measure in ("jobs", "processors", "nodes")
            if measure in self.limits
        )

    def room_at(self, job: Job, measure: str, now: float) -> float:
        """The earliest moment at which time alone has made room for the job; ``math.inf``: never."""
        if measure in self.spent:
            return self._forgotten_at(job, measure, now)
        excess = self.used(MINUTES, now) + self._asked(job, MINUTES) - self.limits[MINUTES]
        running = sum(self._rate(other, MINUTES) for other in self.jobs.values() if left(other, now) > 0)
        return now + max(excess * 60.0 / running if running else 0.0, 1.0)

    def _forgotten_at(self, job: Job, measure: str, now: float) -> float:
        """When so much of what was used is forgotten; the end of a running job is told."""
        half_life = self.spent[measure].half_life
        spent = float(self.spent[measure].at(now, 1)[0])
        may = self.limits[measure] - self._asked(job, measure) - (self.used(measure, now) - spent)
        if half_life is None or may <= 0 or spent <= 0:
            return math.inf
        return now + max(half_life * math.log2(spent / may), 1.0)


def left(job: Job, now: float) -> float:
    """Seconds until a running job's limit is over."""
    if job.start_time is None:
        return job.estimate
    return max(job.start_time + job.paused + job.estimate - now, 0.0)
