"""The order of a grid site: each queue has a priority, and waiting raises it.

E. Medernach, "Workload Analysis of a Cluster in a Grid Environment", JSSPP 2005, section 2: Maui under PBS. A
job's priority is that of its queue and 10 for each second that it waits; the owner's and the group's are
added, by default 0. The priorities of all jobs rise alike, so the order of waiting jobs never changes: it is
that of the queue's priority less 10 for each second until the submission, a fixed key. Ties: earlier
submission, then the smaller id.

Decisions on what is left open: a job's queue is its QOS if the table has it, else its pool; a queue without a
priority has 0. The paper's limits on running jobs are the plugin ``limits``. It takes a job over its limit
out of the queue until there is room, as Maui blocks the job for a poll; polls are ``--cycle`` of a dry run.
"""

from __future__ import annotations

from typing import Annotated

import pydantic

from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Traits
from headway.state import Job
from headway_plugins.grid.lpc import QUEUES

_Points = Annotated[float, pydantic.Field(ge=-1e12, le=1e12, allow_inf_nan=False)]

#: The paper's, by their names and by their numbers in traces.
LPC = {
    name: float(queue.priority)
    for number, queue in enumerate(QUEUES, start=1)
    for name in (queue.name, str(number))
}


class QueuePriorityOptions(pydantic.BaseModel):
    """The options of :class:`QueuePriority`."""

    model_config = pydantic.ConfigDict(extra="forbid")

    queues: dict[str, _Points] = pydantic.Field(
        default=LPC,
        description="queue (QOS or pool) -> priority; default: the paper's, Test (1) to Infinite (5)",
    )
    groups: dict[str, _Points] = pydantic.Field(
        default={}, description="group or account -> priority that is added"
    )
    users: dict[str, _Points] = pydantic.Field(default={}, description="user -> priority that is added")
    second: float = pydantic.Field(
        default=10.0,
        ge=0,
        le=1e6,
        allow_inf_nan=False,
        description="priority that is added for each second of waiting",
    )


class QueuePriority(Plugin):
    """The highest priority first: that of the job's queue, and more for each second of waiting."""

    Options = QueuePriorityOptions
    traits = Traits(paper="E. Medernach: Workload Analysis of a Cluster in a Grid Environment, JSSPP 2005")

    def __init__(self, options: QueuePriorityOptions | None = None) -> None:
        super().__init__(options or QueuePriorityOptions())

    def priority(self, job: Job, now: float) -> float:
        """At ``now`` (absolute seconds)."""
        return self._points(job) + self.options.second * (now - job.description.submit_time)

    def _points(self, job: Job) -> float:
        about, options = job.description, self.options
        found: float = options.queues.get(about.qos, options.queues.get(about.pool, 0.0))
        found += options.groups.get(about.group, options.groups.get(about.account, 0.0))
        return found + options.users.get(about.user, 0.0)

    @hookimpl
    def queue_key(self, job: Job) -> tuple[float, float, int, str]:
        submit = job.description.submit_time
        return (self.options.second * submit - self._points(job), submit, len(job.id), job.id)
