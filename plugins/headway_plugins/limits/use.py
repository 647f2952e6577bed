"""What jobs have of what is limited, and who has how much of it together."""

from __future__ import annotations

from collections.abc import Mapping

from headway.state import Job
from headway_plugins.limits.rules import Amounts
from headway_plugins.priority.fair_share import amount

#: Measures in the words of messages.
UNITS = {
    "jobs": "running jobs",
    "processors": "processors",
    "nodes": "nodes",
    "memory": "GiB of memory",
    "processor_minutes": "processor-minutes that are left to run",
    "walltime": "seconds of walltime",
}
RESOURCE = "resource:"
MINUTES = "processor_minutes"
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
    if measure == MINUTES:
        return job.processors * job.estimate / 60.0
    return amount(job.request, measure.removeprefix(RESOURCE), job.processors)


def unit(measure: str) -> str:
    """The measure in words."""
    return UNITS.get(measure) or measure.removeprefix(RESOURCE)


def limits_of(amounts: Amounts) -> tuple[dict[str, float], dict[str, float]]:
    """Measure -> limit: of all jobs that run, and of one job."""
    together = {
        name: float(value)
        for name in ("jobs", "processors", "nodes", "memory", MINUTES)
        if (value := getattr(amounts, name)) is not None
    }
    together |= {f"{RESOURCE}{name}": value for name, value in amounts.resources.items()}
    largest = amounts.largest
    single = {
        name: float(value)
        for name in ("processors", "nodes", "memory", "walltime", MINUTES)
        if (value := getattr(largest, name)) is not None
    }
    single |= {f"{RESOURCE}{name}": value for name, value in largest.resources.items()}
    return together, single


def _highest(limit: float) -> float:
    """Above which a sum is over a limit."""
    return limit + _ROUNDING * max(limit, 1.0)


class Holder:
    """Somebody who is counted by themselves: what they may have, and what they have."""

    __slots__ = ("_most", "jobs", "key", "label", "limits", "single", "use")

    def __init__(self, key: tuple[int, tuple[str, ...]], label: str, amounts: Amounts) -> None:
        self.key = key
        self.label = label
        self.limits, self.single = limits_of(amounts)
        self._most = {name: _highest(limit) for name, limit in self.limits.items()}
        self.use = dict.fromkeys(self.limits, 0.0)
        #: The jobs that run, where minutes that are left count.
        self.jobs: dict[str, Job] = {}

    def add(self, job: Job) -> Mapping[str, float]:
        """The job runs; what it counts for."""
        added = {}
        for measure in self.limits:
            if measure == MINUTES:
                self.jobs[job.id] = job
            else:
                added[measure] = asked(job, measure)
                self.use[measure] += added[measure]
        return added

    def take_off(self, job: Job, added: Mapping[str, float]) -> None:
        """It runs no longer."""
        for measure, value in added.items():
            self.use[measure] -= value
        self.jobs.pop(job.id, None)

    def used(self, measure: str, now: float) -> float:
        """What is in use."""
        if measure != MINUTES:
            return self.use[measure]
        return sum(job.processors * left(job, now) for job in self.jobs.values()) / 60.0

    def too_large(self, job: Job) -> str:
        """Why the job may never run as it is; "" if it may."""
        for limits in (self.single, self.limits):
            for measure, limit in limits.items():
                wanted = asked(job, measure)
                if wanted > _highest(limit):
                    whom = "one job of " if limits is self.single else ""
                    return (
                        f"it asks for {wanted:g} {unit(measure)}, and the limit of {whom}{self.label} is "
                        f"{limit:g}"
                    )
        return ""

    def over(self, job: Job, now: float) -> str:
        """The measure of which the job would use too much; "" if there is none."""
        for measure, most in self._most.items():
            if self.used(measure, now) + asked(job, measure) > most:
                return measure
        return ""

    def has_room(self, job: Job, now: float) -> bool:
        """Whether the job may start as far as this one goes."""
        return not self.over(job, now)

    def why(self, job: Job, measure: str, now: float) -> str:
        """The limit that is in the job's way, for a person."""
        return (
            f"the limit of {self.limits[measure]:g} {unit(measure)} of {self.label} is reached: "
            f"{self.used(measure, now):g} in use, it would add {asked(job, measure):g}"
        )

    def full(self) -> bool:
        """Whether not even the smallest job may start."""
        return any(
            self.use[measure] + 1 > self.limits[measure] + _ROUNDING
            for measure in ("jobs", "processors", "nodes")
            if measure in self.limits
        )

    def room_at(self, job: Job, now: float) -> float:
        """The earliest moment at which so many minutes are left less that the job may start."""
        excess = self.used(MINUTES, now) + asked(job, MINUTES) - self.limits[MINUTES]
        rate = sum(other.processors for other in self.jobs.values() if left(other, now) > 0)
        return now + max(excess * 60.0 / rate if rate else 0.0, 1.0)


def left(job: Job, now: float) -> float:
    """Seconds until a running job's limit is over."""
    if job.start_time is None:
        return job.estimate
    return max(job.start_time + job.paused + job.estimate - now, 0.0)
