"""A workload's job: what the user asked for, and what the scheduler must not know."""

from __future__ import annotations

import msgspec

from headway.model import JobDescription


class TraceJob(msgspec.Struct, frozen=True, gc=False):
    """A job with its secret: how long it really runs.

    ``runtime`` is seconds of work at rate 1, not cut at the estimate.
    """

    job: JobDescription
    runtime: float
    #: How it ends if it is not cut short; one of :data:`headway.events.OUTCOMES`.
    outcome: str = "completed"
    #: Row of the trace's record array; -1: from no trace.
    row: int = -1


class TraceCommand(msgspec.Struct, frozen=True, gc=False):
    """An elastic command that a workload's user gives at ``time`` (seconds)."""

    time: float
    job_id: str
    #: "ET", "RT" (extend, reduce time; ``amount`` in seconds), "EP", "RP" (processors).
    command: str
    amount: float
