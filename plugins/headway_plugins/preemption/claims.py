"""Room that is being made: which jobs are to go for which job, and what they are told."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.decisions import Kill, Requeue, Signal, Suspend
from headway.state import Job, PoolState, State
from headway.state.records import ON_NODES
from headway_plugins.preemption.rules import Rule

#: How a rule's victims are told to go.
ORDERS: dict[str, type[Requeue] | type[Kill] | type[Suspend]] = {
    "requeue": Requeue, "cancel": Kill, "suspend": Suspend,
}  # fmt: skip


@dataclass(frozen=True)
class Victim:
    """A job that is to go: when it had started, what it is told, and the processor-seconds that are lost.

    ``told``: what it is told first, where it has a grace time.
    """

    started: float | None
    order: Requeue | Kill | Suspend
    lost: float
    told: Signal | None
    rule: Rule


@dataclass
class Claim:
    """Room that is being made for a job; given up at ``deadline`` (absolute seconds)."""

    job: Job
    #: The pool, of its pools, in which it is to start.
    pool: PoolState
    #: What its victims' going costs, as victims are compared.
    cost: float
    #: The nodes that it is to start on.
    nodes: frozenset[str]
    deadline: float
    #: When the victims with a grace time go, absolute seconds; None: all victims were told to go.
    until: float | None = None
    victims: dict[str, Victim] = field(default_factory=dict)


def still_there(claim: Claim, state: State) -> list[Job]:
    """The victims that have not gone yet."""
    jobs = ((state.jobs.get(name), told) for name, told in claim.victims.items())
    return [
        job
        for job, told in jobs
        if job is not None and job.status in ON_NODES and not job.lends and job.start_time == told.started
    ]
