"""The jobs that one barrier's key keeps out of their queues (:mod:`.barriers`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from headway.state.records import Job

_INF = float("inf")


class Barred:
    """Jobs by their size, so that room for small jobs costs no question about large jobs."""

    __slots__ = ("_by_size",)

    def __init__(self) -> None:
        #: Processors -> the jobs that had that size when they came, by id.
        self._by_size: defaultdict[int, dict[str, Job]] = defaultdict(dict)

    def __bool__(self) -> bool:
        return bool(self._by_size)

    def __iter__(self) -> Iterator[Job]:
        for jobs in self._by_size.values():
            yield from jobs.values()

    def put(self, job: Job) -> None:
        """It is kept out; it was not before."""
        self._by_size[job.processors][job.id] = job

    def drop(self, job: Job) -> bool:
        """It is not kept out any more; whether it was."""
        size = job.processors
        if job.id not in self._by_size.get(size, ()):
            # It may have had a different size when it came.
            sizes = [size for size, jobs in self._by_size.items() if job.id in jobs]
            if not sizes:
                return False
            size = sizes[0]
        jobs = self._by_size[size]
        del jobs[job.id]
        if not jobs:
            del self._by_size[size]
        return True

    def take(self, most: float) -> list[Job]:
        """Takes out and returns the jobs of at most so many processors."""
        if most == _INF:
            taken = list(self)
            self._by_size.clear()
            return taken
        sizes = [size for size in self._by_size if size <= most]
        return [job for size in sizes for job in self._by_size.pop(size).values()]
