"""Jobs of the emulated peer network, and what becomes of them. Times are hours."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from headway_plugins.wave.draws import Hours


class Outcome(StrEnum):
    """What became of a job."""

    DONE = "done"
    #: It lost its host, and no other was found.
    FAILED = "failed"
    #: No host was found for it at first.
    FAILED_PLACEMENT = "failed-placement"
    #: It still waits or runs at the end of the run.
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Job:
    """A sequential job."""

    submit: Hours
    #: On a dedicated machine.
    runtime: Hours
    #: The host whose user submits it; None: it is not known.
    client: int | None = None


@dataclass(slots=True, eq=False)
class Course:
    """What has become of a job so far."""

    number: int
    job: Job
    #: Work that is left, hours of a dedicated machine.
    left: Hours
    #: The host that it has claimed; None: no host.
    host: int | None = None
    #: Since when it runs; None: it does not.
    since: Hours | None = None
    #: When it ran first, and when it was done or failed.
    first: Hours | None = None
    end: Hours | None = None
    outcome: Outcome = Outcome.UNFINISHED
    migrations: int = 0
    #: How often it was submitted again after a failure.
    retries: int = 0
    #: Work that was thrown away.
    lost: Hours = 0
    #: When it began or went on to run, and where.
    placements: list[tuple[Hours, int]] = field(default_factory=list)

    @property
    def done(self) -> Hours:
        """Work that is done and kept."""
        return self.job.runtime - self.left

    @property
    def failed(self) -> bool:
        return self.outcome in (Outcome.FAILED, Outcome.FAILED_PLACEMENT)
