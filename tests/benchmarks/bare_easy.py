"""EASY backfilling without any framework: one function, the same jobs in, the same records out.

The yardsticks of the benchmarks: what the loop costs when nothing is pluggable, observable or live.
:func:`plain_easy` is written the obvious way; :func:`tuned_easy` keeps everything in arrays and sorted
lists, and skips what cannot change.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heappop, heappush

from headway.results import JobResult
from headway.workload import TraceJob


def plain_easy(jobs: Sequence[TraceJob], processors: int) -> list[JobResult]:
    """The schedule of ``jobs`` (in order of submission, none larger than ``processors``)."""
    free = processors
    queue: list[TraceJob] = []
    #: (expected end, number, job, start)
    running: list[tuple[float, int, TraceJob, float]] = []
    completions: list[tuple[float, int, tuple[float, int, TraceJob, float]]] = []
    results: dict[str, JobResult] = {}
    at = number = 0

    def start(job: TraceJob, now: float) -> None:
        nonlocal free, number
        request = job.job.request
        free -= request.processors
        number += 1
        entry = (now + request.walltime, number, job, now)
        running.append(entry)
        heappush(completions, (now + min(job.runtime, request.walltime), number, entry))

    while at < len(jobs) or completions:
        now = min(
            jobs[at].job.submit_time if at < len(jobs) else float("inf"),
            completions[0][0] if completions else float("inf"),
        )
        while completions and completions[0][0] <= now:
            end, _, entry = heappop(completions)
            running.remove(entry)
            _, _, job, began = entry
            free += job.job.request.processors
            outcome = "timed out" if job.runtime > job.job.request.walltime else job.outcome
            results[job.job.id] = JobResult(
                job.job, began, end, outcome, end - began, (), job.job.pool, job.row
            )
        while at < len(jobs) and jobs[at].job.submit_time <= now:
            queue.append(jobs[at])
            at += 1
        while queue and queue[0].job.request.processors <= free:
            start(queue.pop(0), now)
        if not queue:
            continue
        extra = free - queue[0].job.request.processors
        shadow = now
        running.sort()
        for end, _, job, _ in running:
            if extra >= 0 and end > shadow:
                break
            extra += job.job.request.processors
            shadow = end
        for job in queue[1:]:
            request = job.job.request
            if request.processors > free:
                continue
            if now + request.walltime > shadow:
                if request.processors > extra:
                    continue
                extra -= request.processors
            start(job, now)
            queue.remove(job)
    return [results[job.job.id] for job in jobs]


def tuned_easy(jobs: Sequence[TraceJob], processors: int) -> list[JobResult]:
    """The schedule of ``jobs`` (in order of submission, none larger than ``processors``)."""
    free = processors
    queue: list[int] = []
    completions: list[tuple[float, int]] = []
    running: list[tuple[float, int]] = []
    sizes = [job.job.request.processors for job in jobs]
    estimates = [job.job.request.walltime for job in jobs]
    submits = [job.job.submit_time for job in jobs]
    runtimes = [min(job.runtime, job.job.request.walltime) for job in jobs]
    starts = [0.0] * len(jobs)
    results: list[JobResult | None] = [None] * len(jobs)
    at, count = 0, len(jobs)

    def start(index: int, now: float) -> None:
        starts[index] = now
        heappush(completions, (now + runtimes[index], index))
        insort(running, (now + estimates[index], index))

    while at < count or completions:
        now = completions[0][0] if completions else submits[at]
        if at < count and submits[at] < now:
            now = submits[at]
        while completions and completions[0][0] <= now:
            end, index = heappop(completions)
            free += sizes[index]
            del running[bisect_left(running, (starts[index] + estimates[index], index))]
            job = jobs[index]
            outcome = "timed out" if job.runtime > estimates[index] else job.outcome
            results[index] = JobResult(
                job.job, starts[index], end, outcome, end - starts[index], (), job.job.pool, job.row
            )
        while at < count and submits[at] <= now:
            queue.append(at)
            at += 1
        first = 0
        while first < len(queue) and sizes[queue[first]] <= free:
            free -= sizes[queue[first]]
            start(queue[first], now)
            first += 1
        del queue[:first]
        if len(queue) < 2 or not free:
            continue
        extra = free - sizes[queue[0]]
        shadow = now
        for end, index in running:
            if extra >= 0 and end > shadow:
                break
            extra += sizes[index]
            shadow = end
        begun = []
        for place in range(1, len(queue)):
            index = queue[place]
            if sizes[index] <= free:
                if now + estimates[index] > shadow:
                    if sizes[index] > extra:
                        continue
                    extra -= sizes[index]
                free -= sizes[index]
                start(index, now)
                begun.append(place)
                if not free:
                    break
        for place in reversed(begun):
            del queue[place]
    return [result for result in results if result is not None]
