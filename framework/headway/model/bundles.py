"""Bundles: one application that runs on several subjobs at once, with as many processes all the time.

A *subjob* is an ordinary job whose attribute ``bundle`` names its job (:class:`SubmitSubjob`). The
application is launched on the subjobs of its job that start first, together. After that ``Migrate(job,
placement)`` alone says on which members it runs, as (id of the member, processors): subjobs, and the job
itself once it runs. All its processes that move do so together, and members that are left without end then.
"""

from __future__ import annotations

import msgspec

from headway.model import JobDescription

#: A subjob's attribute: the id of the job of which it is a part.
BUNDLE = "bundle"

#: Seconds: all times of bundles are multiples of it, so that sums of them are exact and equal times equal.
TICK = 2.0**-20


def on_tick(seconds: float) -> float:
    """The nearest time that bundles know; infinity counts as such a time."""
    return round(seconds / TICK) * TICK if seconds < 2**32 else seconds


def parent_of(job: JobDescription) -> str:
    """The job of which the job is a subjob; "" if it is no subjob."""
    attributes = job.attributes
    return "" if attributes is None else attributes.get(BUNDLE, "")


class Oversubscription(msgspec.Struct):
    """What it costs an application to have fewer processors than processes, and to be moved.

    With up to d processes on a processor it takes ``penalty`` x d times as long (d > 1).
    """

    penalty: float = 1.0
    #: Seconds for which a moved application stands still; and further seconds for each of its processes,
    #: whose images are written and read together.
    migration_cost: float = 120.0
    cost_per_process: float = 0.0

    def moving(self, processes: int) -> float:
        """Seconds for which an application of so many processes stands still when it is moved."""
        return on_tick(self.migration_cost + processes * self.cost_per_process)

    def rate(self, processes: int, processors: int) -> float:
        """Its speed on so many processors, 1 with a processor for each process."""
        degree = -(-processes // processors)
        return 1.0 if degree <= 1 else 1.0 / (self.penalty * degree)
