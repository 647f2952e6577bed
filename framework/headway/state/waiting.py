"""A job that is not on nodes: whether it belongs into its queue, or waits, for what and until when."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop

from headway.state.choices import common_barrier, common_obstacle, domains_of, face_home
from headway.state.dependencies import unmet_dependencies
from headway.state.facts import Facts
from headway.state.kinds import barriers_of
from headway.state.obstacles import find_obstacle
from headway.state.queues import enqueue, enqueue_together, give_order, leave_queue, rank, unbar
from headway.state.reasons import find_out, is_plain, note_barrier, note_dependencies, why_not_in
from headway.state.records import Barrier, Choice, Domain, Job, Status

_PENDING = Status.PENDING
_WAITING = Status.WAITING


def queue_or_wait(state: Facts, job: Job) -> None:
    """Put a job that is not on nodes where it belongs now."""
    if job.choices:
        _queue_in_each(state, job)
        return
    _queue_or_wait(state, job)


def _queue_in_each(state: Facts, job: Job) -> None:
    """The same for a job of several pools: it stands in the queue of each domain with a pool that could start
    it."""
    leave_queue(state, job)
    choices = job.choices
    for choice in choices:
        choice.obstacle = None
    could: list[Choice] = []
    for choice in choices:
        if choice.refusal:
            continue
        job.pool, job.barrier, job.obstacle = choice.pool, None, None
        if _may_queue(state, job):
            could.append(choice)
            continue
        choice.obstacle, choice.barrier = job.obstacle, job.barrier
        if not why_not_in(choice):
            # The reason is the job's own, and the same in all pools.
            break
    job.barrier, job.obstacle = None, None
    if could:
        if rank(job) != job.order[0]:
            give_order(state, job)
        for choice in could:
            if job.id not in choice.pool.domain.shared:
                job.pool = choice.pool
                enqueue(state, job)
    else:
        job.status = _WAITING
        job.obstacle, job.barrier = common_obstacle(choices), common_barrier(choices)
    face_home((job,))


def _queue_or_wait(state: Facts, job: Job) -> None:
    if _may_queue(state, job):
        enqueue(state, job)


def _may_queue(state: Facts, job: Job) -> bool:
    """Whether nothing keeps the job out of the queue of the pool that it faces; else it waits."""
    if job.barrier is not None:
        unbar(state, job)
    note_dependencies(state, job)
    reason = find_out(state, job)
    if reason is None:
        return True
    job.status = _WAITING
    if reason.note is not None:
        reason.note(state, job)
    return False


def queue_together(state: Facts, jobs: Sequence[Job]) -> None:
    """Several jobs that a barrier kept out of their queues, and that are out of :attr:`Facts.barred` already:
    the same for each."""
    if state.bars_many is None or len(jobs) < 2:
        for job in jobs:
            job.barrier = None
            queue_or_wait(state, job)
        return
    now = state.now
    free: list[Job] = []
    for job in jobs:
        job.barrier = None
        if is_plain(job, now):
            job.obstacle = None
            free.append(job)
        else:
            queue_or_wait(state, job)
    if not free:
        return
    barriers = list(barriers_of(state, free))
    if any(barriers):
        answers, free = zip(free, barriers, strict=True), []
        for job, barrier in answers:
            if barrier is None:
                free.append(job)
            else:
                wait_behind(state, job, barrier)
    ready: dict[Domain, list[Job]] = {}
    for job in free:
        ready.setdefault(job.pool.domain, []).append(job)
    for several in ready.values():
        enqueue_together(state, several)


def wait_behind(state: Facts, job: Job, barrier: Barrier) -> None:
    """A job in no queue waits until its barrier is lifted."""
    job.status = _WAITING
    job.barrier = barrier
    note_barrier(state, job)


def judge_again(state: Facts, job: Job) -> None:
    """The job's size or its pool's capacity changed: it may have become able to run, or unable."""
    if job.status not in (_PENDING, _WAITING) or job.held or job.refusal:
        return
    if not job.choices:
        if job.obstacle is None and find_obstacle(state, job) is None:
            return
        leave_queue(state, job)
    queue_or_wait(state, job)


def judge_dependants(state: Facts) -> None:
    """All events of a step are in, and with them the jobs that other jobs depend on."""
    jobs, state.depending = state.depending, []
    for job in jobs:
        if job.status is _PENDING and unmet_dependencies(state, job):
            leave_queue(state, job)
            queue_or_wait(state, job)


def set_aside(state: Facts, job: Job, until: float, reason: str) -> None:
    """Leave a job out of its queue until then, because nothing can let it start before.

    Policies do not try it meanwhile, so it takes no processors from the jobs behind it.
    """
    if job.status is _PENDING and until > state.now:
        leave_queue(state, job)
        job.not_before, job.hold_reason = until, reason
        queue_or_wait(state, job)


def advance(state: Facts, now: float) -> None:
    """Look at what became due by ``now``."""
    wakeups = state.wakeups
    while wakeups and wakeups[0][0] <= now:
        due = heappop(wakeups)[2]
        if isinstance(due, Job):
            if due.status is _WAITING:
                queue_or_wait(state, due)
                # It was known before: plugins may have booked something for it.
                for domain in domains_of(due):
                    domain.touch()
        else:
            due.domain.touch()


def tell_dependants(state: Facts, job: Job) -> None:
    """Something became of ``job``: look again at the jobs that wait for it, its array or a namesake."""
    for key in (job.id, job.description.array_id, ""):
        waiting = state.dependants.pop(key, None)
        if waiting:
            for other in waiting:
                if other.status is _WAITING:
                    queue_or_wait(state, other)
