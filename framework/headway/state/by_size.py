"""The jobs of a queue by size, so that the next job that fits is found without looking at all jobs.

Where many jobs wait and few processors are free, a policy that goes on behind a job that does not fit
would look at the whole queue each time something ends. Here it looks at one job of each size that
fits: a queue has few different sizes, and most of them are larger than what is free.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar

_order = attrgetter("order")


class Sized(Protocol):
    """What is known of a job here: processors, expected seconds, and its place in the queue."""

    @property
    def processors(self) -> int: ...
    @property
    def expected_runtime(self) -> float: ...
    @property
    def order(self) -> tuple[Any, ...]: ...


class Space(Protocol):
    """What jobs must fit into."""

    @property
    def free(self) -> int: ...


J = TypeVar("J", bound=Sized)


class JobsBySize(Generic[J]):
    """Jobs by their number of processors; jobs of equal size are in service order."""

    __slots__ = ("_members", "_shortest", "_sizes", "instant", "longest")

    def __init__(self, queue: Iterable[J]) -> None:
        self._members: dict[int, list[J]] = {}
        #: Jobs that are expected to take no time.
        self.instant: set[J] = set()
        #: At least as long as any job is expected to run, seconds.
        self.longest = 0.0
        for job in queue:
            self.longest = max(self.longest, job.expected_runtime)
            if job.expected_runtime <= 0:
                self.instant.add(job)
            self._members.setdefault(job.processors, []).append(job)
        #: The sizes that there are, smallest first.
        self._sizes = sorted(self._members)
        #: Jobs of a size by expected runtime: ``(expected runtime, order, job)``; made when needed.
        self._shortest: dict[int, list[tuple[float, tuple[Any, ...], J]]] = {}

    def add(self, job: J) -> None:
        """A job came into the queue."""
        size = job.processors
        if job.expected_runtime > self.longest:
            self.longest = job.expected_runtime
        elif job.expected_runtime <= 0:
            self.instant.add(job)
        if size in self._shortest:
            insort(self._shortest[size], (job.expected_runtime, job.order, job))
        members = self._members.get(size)
        if members is None:
            self._members[size] = [job]
            insort(self._sizes, size)
        elif members[-1].order < job.order:
            members.append(job)
        else:
            insort(members, job, key=_order)

    def remove(self, job: J) -> None:
        """A job left the queue."""
        size = job.processors
        self.instant.discard(job)
        shortest = self._shortest.get(size)
        if shortest is not None:
            at = bisect_left(shortest, (job.expected_runtime, job.order))
            if at < len(shortest) and shortest[at][2] is job:
                del shortest[at]
            else:
                # It is expected to run for longer or shorter since it came.
                del self._shortest[size]
        members = self._members[size]
        if members[0] is job:
            del members[0]
        else:
            del members[bisect_left(members, job.order, key=_order)]
        if not members:
            del self._members[size]
            self._shortest.pop(size, None)
            del self._sizes[bisect_left(self._sizes, size)]

    @property
    def count(self) -> int:
        """How many different sizes there are."""
        return len(self._sizes)

    def sizes(self, most: int) -> list[int]:
        """The sizes up to ``most`` that there are, smallest first."""
        return self._sizes[: bisect_right(self._sizes, most)]

    def members(self, size: int) -> list[J]:
        """The jobs of a size in service order; not to be changed."""
        return self._members[size]

    def shortest(self, size: int) -> list[tuple[float, tuple[Any, ...], J]]:
        """The jobs of a size by expected runtime: ``(seconds, order, job)``; not to be changed."""
        shortest = self._shortest.get(size)
        if shortest is None:
            shortest = sorted((job.expected_runtime, job.order, job) for job in self._members[size])
            self._shortest[size] = shortest
        return shortest

    def fitting(self, pool: Space) -> Iterator[J]:
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

    def soonest(self, room: Callable[[], int]) -> Iterator[J]:
        """Shortest expected runtime first, then in service order, the jobs that need at most ``room()``
        processors by then.

        Jobs may be started meanwhile, but none may come or go.
        """
        count = bisect_right(self._sizes, room())
        if not count:
            return
        heads = []
        for size in self._sizes[:count]:
            seconds, order, job = self.shortest(size)[0]
            heads.append((seconds, order, size, 0, job))
        heapify(heads)
        while heads:
            _, _, size, at, job = heads[0]
            if size > room():
                heappop(heads)
                continue
            members = self._shortest[size]
            at += 1
            if at < len(members):
                seconds, order, following = members[at]
                heapreplace(heads, (seconds, order, size, at, following))
            else:
                heappop(heads)
            yield job
