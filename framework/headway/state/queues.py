"""The pools' queues: jobs come in where their order puts them, and leave.

A queue stays sorted, and each pool remembers what happened to it since its last cycle, so that a
cycle looks only at what is new.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from headway.state.choices import pools_of
from headway.state.facts import Facts
from headway.state.records import Barrier, Choice, Job, PoolState, Status

_order = attrgetter("order")
_PENDING = Status.PENDING
#: From so many jobs on the queue is sorted once instead of making room for each.
TOGETHER = 4


def enqueue(state: Facts, job: Job) -> None:
    """The job may be started: it takes its place in the queue."""
    if job.edition != state.edition and state.queue_key is not None:
        give_key(state, job)
    pool = job.pool
    queue = pool.queue
    job.status = _PENDING
    if job.choices:
        pool.shared[job.id] = job
    try:
        last = not queue or queue[-1].order < job.order
        if not last:
            insort(queue, job, key=_order)
    except TypeError as error:
        state.anomalies.append(f"job {job.id} has a queue key that compares with no other: {error}")
        job.order = ((1,), job.submit_time, job.seq)
        insort(queue, job, key=_order)
        last = False
    if job.processors < pool.least:
        pool.least = job.processors
    if pool.arrivals is not None:
        pool.arrivals.append(job)
    if pool.by_size is not None:
        pool.by_size.add(job)
    if last:
        queue.append(job)
        if pool.fresh >= 0:
            pool.fresh += 1
            # Nothing else changed, so if this one cannot start, nobody can; but nodes are woken, and stay on,
            # for what is booked on them, and whoever has outlived his limit is expected to end later than
            # when that was decided.
            if (
                job.processors <= pool.free
                or state.ask_always
                or ((state.sleeps or state.nodes.power) and not pool.flat)
                or (pool.running and pool.running[0][0] <= state.now)
            ):
                pool.changed = True
            return
    pool.fresh = -1
    pool.changed = True


def enqueue_together(state: Facts, jobs: Sequence[Job]) -> None:
    """The same for several jobs of one pool."""
    if len(jobs) < TOGETHER:
        for job in jobs:
            enqueue(state, job)
        return
    if state.queue_key is not None:
        edition = state.edition
        for job in [job for job in jobs if job.edition != edition]:
            give_key(state, job)
    pool = jobs[0].pool
    try:
        coming = sorted(jobs, key=_order)
        last = not pool.queue or pool.queue[-1].order < coming[0].order
        together = [*pool.queue, *coming] if last else sorted([*pool.queue, *coming], key=_order)
    except TypeError:
        # One by one it is found whose order it is.
        for job in jobs:
            enqueue(state, job)
        return
    if last and pool.fresh >= 0:
        # What was concluded about the others stands; each of these is looked at by itself.
        for job in coming:
            enqueue(state, job)
        return
    pool.queue = together
    for job in coming:
        job.status = _PENDING
    if pool.by_size is not None:
        for job in coming:
            pool.by_size.add(job)
    pool.least = min(pool.least, min([job.processors for job in coming]))
    if pool.arrivals is not None:
        pool.arrivals += coming
    pool.fresh, pool.changed = -1, True


def leave_queue(state: Facts, job: Job) -> None:
    """The job may no longer be started, or left; nor does it wait behind a barrier."""
    if job.choices:
        for choice in job.choices:
            leave_pool(state, job, choice)
        job.barrier = None
        return
    if job.barrier is not None:
        unbar(state, job)
    if job.status is _PENDING:
        _leave(job.pool, job)


def leave_pool(state: Facts, job: Job, choice: Choice) -> None:
    """The job, which may stand in the queues of others of its pools, may not be started in this one."""
    if choice.barrier is not None:
        _unbar(state, job, choice.barrier)
        choice.barrier = None
    if choice.pool.shared.pop(job.id, None) is not None:
        _leave(choice.pool, job)


def _leave(pool: PoolState, job: Job) -> None:
    drop(pool.queue, job)
    if pool.by_size is not None:
        pool.by_size.remove(job)
    pool.touch()


def unbar(state: Facts, job: Job) -> None:
    """A barred job is barred no longer, or is to be asked about anew."""
    barrier, job.barrier = job.barrier, None
    if barrier is not None:
        _unbar(state, job, barrier)


def _unbar(state: Facts, job: Job, barrier: Barrier) -> None:
    key = barrier.key
    barred = state.barred.get(key) if key is not None else None
    if barred is not None and barred.drop(job) and not barred:
        del state.barred[key]


def sweep(state: Facts, pool: PoolState, gone: Sequence[Job]) -> None:
    """Take jobs that wait in the queue no longer out of it, and out of those of their other pools."""
    if state.in_several:
        _leave_others(state, pool, gone)
    queue = pool.queue
    if pool.by_size is not None:
        for job in gone:
            pool.by_size.remove(job)
    count = len(gone)
    if count > 1 and queue[:count] == gone:
        del queue[:count]
        return
    # To walk along the queue costs as much as to close dozens of gaps in it.
    if count > 4 and 64 * count > len(queue):
        pool.queue = [job for job in queue if job.status is _PENDING]
        return
    for job in gone:
        if queue[0] is job:
            del queue[0]
        else:
            drop(queue, job)


def _leave_others(state: Facts, pool: PoolState, gone: Sequence[Job]) -> None:
    for job in gone:
        for choice in job.choices:
            if choice.pool is not pool:
                leave_pool(state, job, choice)
        pool.shared.pop(job.id, None)


def give_key(state: Facts, job: Job) -> None:
    """Ask for a job's place (hook ``queue_key``)."""
    if state.queue_key is not None:
        job.order = (state.queue_key(job), job.description.submit_time, job.seq)
        job.edition = state.edition


def outdate_keys(state: Facts) -> None:
    """What the plugin's keys follow has changed. Those of jobs in no queue are asked for anew when their jobs
    come into one (``job.edition`` is that of the old key then); for the others, see :func:`rekey`."""
    state.edition += 1


def rekey(state: Facts, jobs: Iterable[Job], answers: Iterable[tuple[Any, ...]] | None = None) -> None:
    """Ask again for these jobs' places (hook ``queue_key``), of jobs that are on no nodes, because what their
    plugin's keys follow has changed.

    ``answers``: what the plugin would say of each; without them it is asked job by job. Where several
    plugins have the hook they are all asked in any case: who comes first decides.

    A pool whose order comes out as it was has nothing to look at: what is booked there stands.
    """
    if state.queue_key is None:
        return
    edition = state.edition
    pools: dict[str, PoolState] = {}
    if answers is not None and state.one_key:
        pool = None
        for job, answer in zip(jobs, answers, strict=True):
            # As the scheduler writes down what it is answered.
            job.order = ((0, *answer), job.description.submit_time, job.seq)
            job.edition = edition
            if job.choices:
                pools.update({choice.pool.name: choice.pool for choice in job.choices})
            elif job.pool is not pool and job.status is _PENDING:
                pool = job.pool
                pools[pool.name] = pool
    else:
        for job in jobs:
            give_key(state, job)
            if job.status is _PENDING:
                pools.update({each.name: each for each in pools_of(job)})
    for pool in pools.values():
        before = pool.queue
        try:
            after = sorted(before, key=_order)
        except TypeError as error:
            state.anomalies.append(f"pool {pool.name} has queue keys that do not compare: {error}")
            for job in before:
                job.order = ((1,), job.submit_time, job.seq)
            after = sorted(before, key=_order)
        # It goes by the keys as they were.
        pool.by_size = None
        if after != before:
            pool.queue = after
            pool.touch()


def drop(queue: list[Job], job: Job) -> None:
    """Take one job out of a sorted queue."""
    at = bisect_left(queue, job.order, key=_order)
    if at < len(queue) and queue[at] is job:
        del queue[at]
    else:
        queue.remove(job)
