"""The jobs of a queue by size, so that the next one that fits is found without looking at all of them.

Where many jobs wait and few processors are free, a policy that goes on behind a job that does not fit
would look at the whole queue each time something ends. Here it looks at one job of each size that
fits: a queue has few different sizes, and most of them are larger than what is free.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.state import Job, PoolState

_order = attrgetter("order")


class JobsBySize:
    """Jobs by their number of processors, those of one size in service order."""

    __slots__ = ("_members", "_sizes")

    def __init__(self, queue: Iterable[Job]) -> None:
        self._members: dict[int, list[Job]] = {}
        for job in queue:
            self._members.setdefault(job.processors, []).append(job)
        #: The sizes that there are, smallest first.
        self._sizes = sorted(self._members)

    def add(self, job: Job) -> None:
        """A job came into the queue."""
        members = self._members.get(job.processors)
        if members is None:
            self._members[job.processors] = [job]
            insort(self._sizes, job.processors)
        elif members[-1].order < job.order:
            members.append(job)
        else:
            insort(members, job, key=_order)

    def remove(self, job: Job) -> None:
        """A job left the queue."""
        members = self._members[job.processors]
        if members[0] is job:
            del members[0]
        else:
            del members[bisect_left(members, job.order, key=_order)]
        if not members:
            del self._members[job.processors]
            del self._sizes[bisect_left(self._sizes, job.processors)]

    def fitting(self, pool: PoolState) -> Iterator[Job]:
        """In service order, the jobs that need at most as many processors as ``pool`` has free by then.

        Jobs may be started meanwhile, but none may come or go.
        """
        sizes = self._sizes
        count = bisect_right(sizes, pool.free)
        if not count:
            return
        by_size = self._members
        heads = [(by_size[size][0].order, size, 0) for size in sizes[:count]]
        heapify(heads)
        while heads:
            _, size, at = heads[0]
            if size > pool.free:
                heappop(heads)
                continue
            members = by_size[size]
            job = members[at]
            at += 1
            if at < len(members):
                heapreplace(heads, (members[at].order, size, at))
            else:
                heappop(heads)
            yield job
