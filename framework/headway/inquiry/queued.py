"""A job that is on no nodes in sentences: its place in the queue of each of its pools, and why it waits."""

from __future__ import annotations

from collections.abc import Callable

from headway.inquiry.inquiry import Inquiry
from headway.inquiry.waiting import in_words, why_in_queue, why_outside
from headway.state import Job, PoolState
from headway.state.choices import facing_pool, ways
from headway.state.occupation import FOREGROUND
from headway.state.queues import place_of
from headway.state.reasons import why_not_in

#: Sentences about a job in the queue of the pool that it faces.
InQueue = Callable[[Inquiry, Job], list[str]]


def place_and_cause(inquiry: Inquiry, job: Job) -> list[str]:
    """Its place in the queue, and why it waits there."""
    pool, domain = job.pool, job.domain
    shared = f" of {in_words(domain.pools)}, which share nodes" if len(domain.pools) > 1 else ""
    given = _given_now(inquiry, pool)
    more = f", of which jobs that start now get {given}" if given else ""
    number = place_of(inquiry.queue(domain), job) + 1
    return [
        f"It is number {number} of {len(domain.queue)} in the queue{shared}; "
        f"{inquiry.state.free_in(pool) + given} of {pool.total} processors are free{more}.",
        *why_in_queue(inquiry, job).sentences,
    ]


def without_place(inquiry: Inquiry, job: Job) -> list[str]:
    """Why it waits in the queue, without its place."""
    return list(why_in_queue(inquiry, job).sentences)


def waits(inquiry: Inquiry, job: Job, in_queue: InQueue = place_and_cause) -> list[str]:
    """Why a job that is on no nodes is on none."""
    outside = why_outside(inquiry, job)
    return in_queues(inquiry, job, in_queue) if outside is None else list(outside.sentences)


def in_queues(inquiry: Inquiry, job: Job, in_queue: InQueue = place_and_cause) -> list[str]:
    """Of each pool of a job that waits why it waits there."""
    if not job.choices:
        return in_queue(inquiry, job)
    lines, told = [], set[str]()
    for choice in job.choices:
        with facing_pool(job, choice.pool):
            domain = job.domain
            if why := why_not_in(choice):
                lines.append(f"In pool {choice.pool.name!r}: {why}.")
            elif job.id in domain.shared and domain.name not in told:
                told.add(domain.name)
                first, *rest = in_queue(inquiry, job)
                lines += [f"In {in_words(ways(job, domain))} {first[0].lower()}{first[1:]}", *rest]
    return lines


def _given_now(inquiry: Inquiry, pool: PoolState) -> int:
    """Processors of a pool that the wished starts take: these jobs are not started yet."""
    nodes = inquiry.state.nodes.descriptions
    given = 0
    for start in inquiry.wished_starts.values():
        if start.tier != FOREGROUND:
            continue
        if start.placement:
            here = (
                count for name, count in start.placement if name in nodes and pool.name in nodes[name].pools
            )
            given += sum(here)
        elif (job := inquiry.state.jobs.get(start.job_id)) is not None and job.pool is pool:
            given += job.processors
    return given
