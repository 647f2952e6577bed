"""What the head of the queue is counted against: the processors of its pool.

The head can have its pool's nodes alone, so what is free for it, what becomes free, and what it leaves to
other jobs are counted over these. A candidate of any pool of the domain counts with what it takes of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headway.model import Placement
from headway.resources import Bools, NodeTable
from headway.state import Domain, Job, PoolState, RunningEntry
from headway.state.pool_share import count_on


class Part:
    """The nodes of a pool, in a domain of several pools."""

    def __init__(self, nodes: NodeTable, pool: PoolState) -> None:
        self._nodes = nodes
        #: Which nodes they are.
        self.mask: Bools = nodes.pool_mask(pool.name)
        #: Their processors that are idle in front.
        self.free: int = nodes.count(pool.name)[1]

    def running(self, entries: Iterable[RunningEntry]) -> Iterable[RunningEntry]:
        """The jobs in front that have processors of these nodes, with as many as they have of them."""
        for end, seq, _, job in entries:
            if held := self.held(job.placement):
                yield end, seq, held, job

    def held(self, placement: Placement) -> int:
        """How many of its processors are of these nodes."""
        return count_on(self._nodes, self.mask, placement)

    def admits(self, job: Job, most: int) -> bool:
        """Whether a job that may have ``most`` of their processors need be tried at all."""
        return True

    def spared(self, most: int) -> Spared | None:
        """The limit to what a job may have of them; None: :meth:`admits` has said all."""
        return Spared(self, most)

    def taken(self, job: Job) -> int:
        """How many of them a job has that has just come to the front."""
        return self.held(job.placement)


class Whole(Part):
    """All nodes of a domain of one pool: jobs count with the processors that they ask for."""

    def __init__(self, nodes: NodeTable, domain: Domain) -> None:
        self._nodes = nodes
        self.free = domain.free

    def running(self, entries: Iterable[RunningEntry]) -> Iterable[RunningEntry]:
        return entries

    def held(self, placement: Placement) -> int:
        return sum(count for _, count in placement)

    def admits(self, job: Job, most: int) -> bool:
        return job.processors <= most

    def spared(self, most: int) -> Spared | None:
        return None

    def taken(self, job: Job) -> int:
        return job.processors


@dataclass(frozen=True)
class Spared:
    """Nodes of which a job may have so many processors at most."""

    part: Part
    most: int

    def allows(self, placement: Placement) -> bool:
        """Whether a placement takes no more of them."""
        return self.part.held(placement) <= self.most
