"""The three policies once more, brute force, from the words of their definition and from nothing else.

Integer times, one flat pool, quadratic or worse; every moment is worked out from scratch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter


@dataclass(frozen=True)
class Job:
    """``runtime`` is what it needs; it is killed at its ``estimate``."""

    submit: int
    processors: int
    estimate: int
    runtime: int


@dataclass
class Running:
    at: int
    job: Job
    expected_end: int
    end: int


Policy = Callable[[list[tuple[int, Job]], list[Running], int, int], list[int]]


def schedule(jobs: list[Job], total: int, policy: Policy) -> list[int | None]:
    """Start time of each job (given in order of submission); None: never started.

    At one instant: completions, arrivals in order, one cycle. What a cycle starts with runtime 0
    completes in a further round at the same instant.
    """
    starts: list[int | None] = [None] * len(jobs)
    queue: list[tuple[int, Job]] = []
    running: list[Running] = []
    arrived = 0
    while True:
        moments = [r.end for r in running]
        if arrived < len(jobs):
            moments.append(jobs[arrived].submit)
        if not moments:
            return starts
        now = min(moments)
        running = [r for r in running if r.end > now]
        while arrived < len(jobs) and jobs[arrived].submit <= now:
            queue.append((arrived, jobs[arrived]))
            arrived += 1
        free = total - sum(r.job.processors for r in running)
        for at in policy(queue, running, free, now):
            job = jobs[at]
            starts[at] = now
            running.append(Running(at, job, now + job.estimate, now + min(job.runtime, job.estimate)))
        queue = [(at, job) for at, job in queue if starts[at] is None]
        assert sum(r.job.processors for r in running) <= total


def fcfs(queue: list[tuple[int, Job]], running: list[Running], free: int, now: int) -> list[int]:
    """Start from the head until one does not fit."""
    begun = []
    for at, job in queue:
        if job.processors > free:
            break
        begun.append(at)
        free -= job.processors
    return begun


def easy(queue: list[tuple[int, Job]], running: list[Running], free: int, now: int) -> list[int]:
    """One reservation; backfill in queue order, by the shadow time or in the extra processors."""
    begun = fcfs(queue, running, free, now)
    ends = [(r.expected_end, r.job.processors) for r in running]
    for _, job in queue[: len(begun)]:
        free -= job.processors
        ends.append((now + job.estimate, job.processors))
    waiting = queue[len(begun) :]
    if not waiting:
        return begun
    head = waiting[0][1]
    shadow, extra = float("inf"), 10**9
    there = free
    for end, leaving in groupby(sorted(ends), key=itemgetter(0)):
        there += sum(processors for _, processors in leaving)
        if there >= head.processors:
            shadow, extra = end, there - head.processors
            break
    for at, job in waiting[1:]:
        if job.processors > free:
            continue
        if now + job.estimate <= shadow:
            pass
        elif job.processors <= extra:
            extra -= job.processors
        else:
            continue
        free -= job.processors
        begun.append(at)
    return begun


def conservative(queue: list[tuple[int, Job]], running: list[Running], free: int, now: int) -> list[int]:
    """A reservation for every queued job in queue order, earliest first, rebuilt each cycle."""
    horizon = sum(job.estimate for _, job in queue) + sum(max(r.expected_end - now, 0) for r in running) + 2
    level = [free] * horizon
    for r in running:
        for second in range(r.expected_end - now, horizon):
            level[second] += r.job.processors
    begun = []
    for at, job in queue:
        for start in range(horizon - job.estimate):
            if all(level[second] >= job.processors for second in range(start, start + job.estimate)):
                for second in range(start, start + job.estimate):
                    level[second] -= job.processors
                if start == 0:
                    begun.append(at)
                break
    return begun
