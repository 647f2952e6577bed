"""The jobs that one barrier's key keeps out of their queues (:mod:`.barriers`)."""

from __future__ import annotations

from collections.abc import Iterator

from headway.state.records import Job


class Barred:
    """Jobs by their size, so that room for small ones costs nothing to the large ones."""

    __slots__ = ("_by_size",)

    def __init__(self) -> None:
        #: Processors -> the jobs of that size, by id.
        self._by_size: dict[int, dict[str, Job]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_size)

    def __iter__(self) -> Iterator[Job]:
        for jobs in self._by_size.values():
            yield from jobs.values()

    def put(self, job: Job) -> None:
        """It is kept out."""
        jobs = self._by_size.get(job.processors)
        if jobs is None:
            self._by_size[job.processors] = {job.id: job}
        else:
            jobs[job.id] = job

    def take(self, most: float) -> list[Job]:
        """Those of at most so many processors, who are here no longer. A job that has changed may be there
        twice."""
        sizes = [size for size in self._by_size if size <= most]
        return [job for size in sizes for job in self._by_size.pop(size).values()]
