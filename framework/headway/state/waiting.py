"""A job that is not on nodes: whether it belongs into its queue, or waits, for what and until when."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from heapq import heappop

from headway.state.barred import Barred
from headway.state.choices import (
    common_barrier,
    common_obstacle,
    domains_of,
    face_home,
    in_each,
    why_not_in,
)
from headway.state.dependencies import due_by_clock, unmet_dependencies
from headway.state.facts import Facts
from headway.state.kinds import barriers_of
from headway.state.obstacles import find_obstacle
from headway.state.queues import enqueue, enqueue_together, give_order, leave_queue, rank, unbar
from headway.state.records import Barrier, Choice, Job, Status
from headway.state.wakeups import wake_at

_INF = float("inf")
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
    waits = _waits_for_others(state, job)
    if nothing_else(state, job):
        job.obstacle = None
        if state.bars is not None and (barrier := state.bars(job)) is not None:
            wait_behind(state, job, barrier)
            return False
        return True
    if job.refusal or job.held or not job.pool.open:
        job.status = _WAITING
        job.obstacle = None
        return False
    job.obstacle = find_obstacle(state, job)
    if job.obstacle is not None:
        job.status = _WAITING
        state.newly_barred.append(job)
        return False
    wake = _INF
    description = job.description
    if description.begin_time is not None and description.begin_time > state.now:
        wake = description.begin_time
    if job.not_before > state.now:
        wake = min(wake, job.not_before) if wake == _INF else max(wake, job.not_before)
    if description.reservation:
        kept = state.reservations.get(description.reservation)
        if kept is None or kept.job_id not in ("", job.id):
            job.status = _WAITING
            return False
        if kept.start > state.now:
            wake = kept.start if wake == _INF else max(wake, kept.start)
    if wake != _INF:
        job.status = _WAITING
        wake_at(state, wake, job)
        return False
    if waits:
        job.status = _WAITING
        if (due := due_by_clock(state, job)) != _INF:
            wake_at(state, due, job)
        return False
    if state.bars is not None and (barrier := state.bars(job)) is not None:
        wait_behind(state, job, barrier)
        return False
    return True


def _waits_for_others(state: Facts, job: Job) -> bool:
    """Whether it waits for other jobs; since when it does no more is noted."""
    dependencies = job.description.dependencies
    if job.held and dependencies and all(one.kind == "singleton" for one in dependencies):
        # There may be very many held namesakes, of which each would be looked at at each end.
        return False
    if dependencies and unmet_dependencies(state, job):
        job.independent = _INF
        return True
    if job.independent == _INF:
        job.independent = state.now
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
    pool, most, domains = None, -1, set[str]()
    for job in jobs:
        job.barrier = None
        if job.pool is not pool:
            pool = job.pool
            domains.add(pool.domain.name)
            most = pool.total if pool.open and pool.flat else -1
        # As `nothing_else`; most of what comes here is asked for again and again.
        if (
            job.processors > most
            or job.not_before > now
            or job.held
            or not job.unconditional
            or job.refusal
            or job.choices
            or pool.bounds is not None
        ):
            queue_or_wait(state, job)
        else:
            job.obstacle = None
            free.append(job)
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
    if len(domains) == 1:
        enqueue_together(state, free)
        return
    ready: dict[str, list[Job]] = {}
    for job in free:
        ready.setdefault(job.domain.name, []).append(job)
    for several in ready.values():
        enqueue_together(state, several)


def nothing_else(state: Facts, job: Job) -> bool:
    """Whether nothing but a barrier can keep a job out of its queue, as is plain at a glance."""
    pool = job.pool
    return (
        job.unconditional
        and pool.open
        and pool.flat
        and pool.bounds is None
        and not job.choices
        and not job.held
        and not job.refusal
        and job.processors <= pool.total
        and job.not_before <= state.now
    )


def wait_behind(state: Facts, job: Job, barrier: Barrier) -> None:
    """A job in no queue waits until its barrier is lifted."""
    job.status = _WAITING
    job.barrier = barrier
    if barrier.key is not None:
        barred_by(state, barrier.key).put(job)


def barred_by(state: Facts, key: Hashable) -> Barred:
    """Those whom barriers of that key keep out of their queues."""
    barred = state.barred.get(key)
    if barred is None:
        barred = state.barred[key] = Barred()
    return barred


def look_again(state: Facts, job: Job) -> None:
    """The job's size or its pool's capacity changed: it may have become able to run, or unable."""
    if job.status is not _PENDING and (job.status is not _WAITING or job.held or job.refusal):
        return
    if job.choices:
        queue_or_wait(state, job)
        return
    found = find_obstacle(state, job)
    if found is None:
        if job.obstacle is not None and job.status is _WAITING:
            queue_or_wait(state, job)
        return
    if job.status is _PENDING:
        leave_queue(state, job)
        job.status = _WAITING
    job.obstacle = found
    state.newly_barred.append(job)


def look_at_dependants(state: Facts) -> None:
    """All events of a step are in, and with them the jobs that others depend on."""
    jobs, state.depending = state.depending, []
    for job in jobs:
        if job.status is _PENDING and unmet_dependencies(state, job):
            leave_queue(state, job)
            queue_or_wait(state, job)


def set_aside(state: Facts, job: Job, until: float, reason: str) -> None:
    """Leave a job out of its queue until then, because nothing can let it start before.

    Policies do not try it meanwhile, so it takes no processors from those behind it.
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


def why_waiting(state: Facts, job: Job, clock: Callable[[float], str] = "{:.0f}".format) -> str:
    """Why a job that is not in a queue cannot be started; "" if it can. ``clock`` writes times."""
    if job.refusal:
        return f"refused: {job.refusal}"
    if job.held:
        return "held" + (f" ({job.hold_reason})" if job.hold_reason else " by its user or an administrator")
    if job.choices and job.status is _WAITING and all(map(why_not_in, job.choices)):
        return in_each(job.choices)
    if job.obstacle is not None:
        return f"{job.obstacle}{f'; its last start failed ({job.hold_reason})' if job.failures else ''}"
    begin = job.description.begin_time
    if begin is not None and begin > state.now:
        return f"its begin time {clock(begin)} has not come"
    if unmet := unmet_dependencies(state, job):
        return unmet
    if job.not_before > state.now:
        why = f"its last start failed ({job.hold_reason})" if job.failures else job.hold_reason
        return f"{why}; it is tried again at {clock(job.not_before)}"
    reservation = job.description.reservation
    if reservation:
        kept = state.reservations.get(reservation)
        if kept is None:
            return f"it asks for reservation {reservation!r}, which does not exist"
        if kept.job_id not in ("", job.id):
            return f"reservation {reservation!r} is kept for job {kept.job_id} alone"
        if kept.start > state.now:
            return f"its reservation {reservation!r} begins at {clock(kept.start)}"
    if not job.pool.open:
        return f"pool {job.pool.name!r} is closed"
    return str(job.barrier) if job.barrier is not None else ""


def tell_dependants(state: Facts, job: Job) -> None:
    """Something became of ``job``: look again at those that wait for it, its array or a namesake."""
    for key in (job.id, job.description.array_id, ""):
        waiting = state.dependants.pop(key, None)
        if waiting:
            for other in waiting:
                if other.status is _WAITING:
                    queue_or_wait(state, other)
