"""What bars a job that could start: limits of its user, its account, or whatever a plugin counts.

A barred job is in no queue (hook ``bar_job``): it holds up no job, and nothing is booked for it. It is asked
about again when it changes, and when the plugin that barred it says that there may be room (:func:`lifted`).

Within a policy's pass jobs become barred by the starts of that very pass. A job that is barred then
(:func:`is_barred`) shows which other jobs are. The scheduler takes the pass back, and has it
repeated without them. If the policy then begins other jobs than before, they are asked about again
(:func:`ask_again`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from headway.state.barred import Barred
from headway.state.choices import common_barrier, domains_of, face_home, facing, may_run_in, ways
from headway.state.facts import Facts
from headway.state.kinds import barriers_of
from headway.state.queues import enqueue, give_order, leave_domain, leave_queue, rank, sweep
from headway.state.reasons import barred_by
from headway.state.records import Barrier, Domain, Job, PoolState, Status
from headway.state.waiting import queue_or_wait, queue_together, wait_behind

_INF = float("inf")
_PENDING = Status.PENDING
_WAITING = Status.WAITING


def is_barred(state: Facts, job: Job) -> bool:
    """Whether a job that a policy would start is barred, by starts of this pass."""
    if state.bars is None:
        return False
    known = state.newly_barred
    if known:
        return True
    barrier = state.bars(job)
    if barrier is None:
        return False
    # A job that was started before it stays started, or will be again: these wait as surely as it does.
    waiting = [
        other for other in job.domain.queue
        if other.status is _PENDING and other is not job and other.id not in known
    ]  # fmt: skip
    known[job.id] = job, barrier
    known.update({found[0].id: found for found in _who_is_barred(state, waiting)})
    return True


def _who_is_barred(state: Facts, jobs: Sequence[Job]) -> list[tuple[Job, Barrier]]:
    if state.bars is None or not jobs:
        return []
    answers = zip(jobs, barriers_of(state, jobs), strict=True)
    return [(job, barrier) for job, barrier in answers if barrier is not None]


def bar_found(state: Facts) -> None:
    """Take the jobs that the last pass has barred out of their queues; the pass was taken back."""
    found = list(state.newly_barred.values())
    state.newly_barred.clear()
    _bar_all(state, found)


def ask_again(state: Facts, jobs: Iterable[Job]) -> bool:
    """Ask again about these jobs that wait behind a barrier; whether any may start after all."""
    found = False
    for job in jobs:
        if (job.status is _WAITING and job.barrier is not None) or job.choices:
            queue_or_wait(state, job)
            found = found or job.status is _PENDING
    return found


def bar(state: Facts, job: Job, barrier: Barrier) -> None:
    """A job that waits in its queue may not start: it leaves it."""
    if job.choices:
        _bar_there(state, job, barrier)
    elif job.status is _PENDING:
        leave_queue(state, job)
        wait_behind(state, job, barrier)


def _bar_there(state: Facts, job: Job, barrier: Barrier) -> None:
    """The job, which has several pools, may not start in the pool that it faces: it leaves that pool's queue,
    unless another pool of the same domain could start it."""
    choice, domain = facing(job), job.domain
    if job.status is not _PENDING or job.id not in domain.shared or choice.barrier is not None:
        return
    choice.barrier = barrier
    if barrier.key is not None:
        barred_by(state, barrier.key).put(job)
    if possible := ways(job, domain):
        job.pool = possible[0]
        domain.touch()
    else:
        leave_domain(job, domain)
    there = [other for other in domains_of(job) if job.id in other.shared]
    if not there:
        job.status, job.barrier = _WAITING, common_barrier(job.choices)
    elif rank(job) != job.order[0]:
        _find_places_anew(state, job, there)


def _find_places_anew(state: Facts, job: Job, domains: Sequence[Domain]) -> None:
    """The pool that put the job ahead in these queues cannot start it any more."""
    faced = job.pool
    for domain in domains:
        leave_domain(job, domain)
    give_order(state, job)
    for domain in domains:
        job.pool = ways(job, domain)[0]
        enqueue(state, job)
    job.pool = faced


def bar_queued(state: Facts, where: PoolState | Domain) -> None:
    """Ask about all that wait for a pool, or for any of a domain's, in the queue."""
    for pool in where.pools if isinstance(where, Domain) else (where,):
        asked = [job for job in pool.domain.queue if may_run_in(job, pool)]
        shared = [job for job in asked if job.choices]
        for job in shared:
            job.pool = pool
        _bar_all(state, _who_is_barred(state, asked))
        face_home(shared)


def _bar_all(state: Facts, found: Sequence[tuple[Job, Barrier]]) -> None:
    """As :func:`bar`, of many together."""
    if not found:
        return
    leaving: dict[str, list[Job]] = {}
    here, jobs, key, behind = None, list[Job](), None, Barred()
    for job, barrier in found:
        if job.choices:
            _bar_there(state, job, barrier)
            continue
        if job.status is not _PENDING:
            continue
        # As `wait_behind`; most of these jobs wait behind the same key.
        job.status, job.barrier = _WAITING, barrier
        if barrier.key is not None:
            if barrier.key is not key:
                key = barrier.key
                behind = barred_by(state, key)
            behind.put(job)
        if job.domain is not here:
            here = job.domain
            jobs = leaving.setdefault(here.name, [])
        jobs.append(job)
    for name, jobs in leaving.items():
        domain = state.domains[name]
        sweep(state, domain, jobs)
        domain.touch()


def lifted(state: Facts, key: Hashable, may: Callable[[Job], bool] | None = None, most: float = _INF) -> None:
    """There may be room where ``key`` (:attr:`Barrier.key`) barred jobs: ask about each of these again.

    ``most``: for jobs of so many processors at most. ``may``: there is no room for a job for which it is
    false. Other jobs go on waiting as they were. To be called before the policies are asked (hook ``react``).
    """
    barred = state.barred.get(key)
    if barred is None:
        return
    again = barred.take(most)
    if may is not None:
        asked, again = again, []
        for job in asked:
            if may(job):
                again.append(job)
            else:
                barred.put(job)
    if not barred:
        del state.barred[key]
    if again:
        queue_together(state, again)
