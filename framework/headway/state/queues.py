"""The domains' queues: jobs come in where their order puts them, and leave.

A queue stays sorted, and each domain remembers what happened to it since its last cycle, so that a
cycle looks only at what is new.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from headway.state.choices import domains_of, pools_of
from headway.state.facts import Facts
from headway.state.reasons import why_not_in
from headway.state.records import Barrier, Choice, Domain, Job, Status, submission

_order = attrgetter("order")
_PENDING = Status.PENDING
#: From so many jobs on the queue is sorted once instead of making room for each.
TOGETHER = 4


def enqueue(state: Facts, job: Job) -> None:
    """The job may be started: it takes its place in the queue."""
    if job.edition != state.edition and state.queue_key is not None:
        give_order(state, job)
    domain = job.domain
    queue = domain.queue
    job.status = _PENDING
    if job.choices:
        domain.shared[job.id] = job
    try:
        last = not queue or queue[-1].order < job.order
        if not last:
            insort(queue, job, key=_order)
    except TypeError as error:
        state.anomalies.append(f"job {job.id} has a queue key that compares with no other: {error}")
        job.order = (job.order[0], (1,), *submission(job))
        insort(queue, job, key=_order)
        last = False
    if job.processors < domain.least:
        domain.least = job.processors
    if domain.by_size is not None:
        domain.by_size.add(job)
    if last:
        queue.append(job)
    # Nothing else changed, so if this job cannot start, none can; but nodes are woken, and stay on, for what
    # is booked on them, and a job that has outlived its limit is expected to end later than when that was
    # decided.
    if domain.news.came(job, last=last) and (
        job.processors <= domain.free
        or state.ask_always
        or ((state.sleeps or state.nodes.power) and not domain.flat)
        or (domain.running and domain.running[0][0] <= state.now)
    ):
        domain.news.due = True


def enqueue_together(state: Facts, jobs: Sequence[Job]) -> None:
    """The same for several jobs of one domain."""
    if len(jobs) < TOGETHER:
        for job in jobs:
            enqueue(state, job)
        return
    if state.queue_key is not None:
        edition = state.edition
        for job in [job for job in jobs if job.edition != edition]:
            give_order(state, job)
    domain = jobs[0].domain
    try:
        coming = sorted(jobs, key=_order)
        last = not domain.queue or domain.queue[-1].order < coming[0].order
        together = [*domain.queue, *coming] if last else sorted([*domain.queue, *coming], key=_order)
    except TypeError:
        # The jobs are taken one by one, to find the job whose order cannot be compared.
        for job in jobs:
            enqueue(state, job)
        return
    if last and domain.news.fresh >= 0:
        # What was concluded about the other jobs stands; each of these jobs is looked at by itself.
        for job in coming:
            enqueue(state, job)
        return
    domain.queue = together
    for job in coming:
        job.status = _PENDING
    if domain.by_size is not None:
        for job in coming:
            domain.by_size.add(job)
    domain.least = min(domain.least, min([job.processors for job in coming]))
    domain.news.came_among(coming)


def leave_queue(state: Facts, job: Job) -> None:
    """The job may no longer be started, or left; nor does it wait behind a barrier."""
    if job.choices:
        for choice in job.choices:
            unbar_choice(state, job, choice)
        for domain in domains_of(job):
            leave_domain(job, domain)
        job.barrier = None
        return
    if job.barrier is not None:
        unbar(state, job)
    if job.status is _PENDING:
        _leave(job.domain, job)


def leave_domain(job: Job, domain: Domain) -> None:
    """The job, which has several pools, may stand in other domains' queues, and not in this domain's."""
    if domain.shared.pop(job.id, None) is not None:
        _leave(domain, job)


def _leave(domain: Domain, job: Job) -> None:
    drop(domain.queue, job)
    if domain.by_size is not None:
        domain.by_size.remove(job)
    domain.touch()


def unbar_choice(state: Facts, job: Job, choice: Choice) -> None:
    """What barred the job in one of its pools bars it there no longer, or is to be asked about anew."""
    if choice.barrier is not None:
        _unbar(state, job, choice.barrier)
        choice.barrier = None


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


def sweep(state: Facts, domain: Domain, gone: Sequence[Job]) -> None:
    """Take jobs that no longer wait in the queue out of it, and out of the queues of their other domains."""
    if state.in_several:
        _leave_others(state, domain, gone)
    queue = domain.queue
    if domain.by_size is not None:
        for job in gone:
            domain.by_size.remove(job)
    count = len(gone)
    if count > 1 and queue[:count] == gone:
        del queue[:count]
        return
    # To walk along the queue costs as much as to close dozens of gaps in it.
    if count > 4 and 64 * count > len(queue):
        domain.queue = [job for job in queue if job.status is _PENDING]
        return
    for job in gone:
        if queue[0] is job:
            del queue[0]
        else:
            drop(queue, job)


def _leave_others(state: Facts, domain: Domain, gone: Sequence[Job]) -> None:
    for job in gone:
        if job.choices:
            for choice in job.choices:
                unbar_choice(state, job, choice)
            for other in domains_of(job):
                if other is not domain:
                    leave_domain(job, other)
            domain.shared.pop(job.id, None)


def give_order(state: Facts, job: Job) -> None:
    """Find a job's place: its pool's priority tier first, then what the hook ``queue_key`` says, then its
    submission."""
    if state.queue_key is None:
        job.order = (rank(job), *submission(job))
    else:
        job.order = (rank(job), state.queue_key(job), *submission(job))
        job.edition = state.edition


def rank(job: Job) -> int:
    """What its pool's priority tier makes of a job's place, the lowest first. Of several pools that could
    start the job, the pool that puts it furthest ahead counts."""
    if not job.choices:
        return -job.pool.tier
    could = [choice.pool for choice in job.choices if not why_not_in(choice)]
    return -max(pool.tier for pool in could or pools_of(job))


def by_tier(jobs: list[Job]) -> list[Job]:
    """Jobs of a queue in a plugin's order, jobs of a higher tier first."""
    if len({job.order[0] for job in jobs}) < 2:
        return jobs
    return sorted(jobs, key=lambda job: job.order[0])


def outdate_keys(state: Facts) -> None:
    """What the plugin's keys follow has changed. The key of a job in no queue is asked for anew when the job
    comes into a queue (``job.edition`` is the old key's then). For jobs in a queue, see :func:`rekey`."""
    state.edition += 1


def rekey(state: Facts, jobs: Iterable[Job], answers: Iterable[tuple[Any, ...]] | None = None) -> None:
    """Ask again for these jobs' places (hook ``queue_key``), of jobs that are on no nodes, because what their
    plugin's keys follow has changed.

    ``answers``: what the plugin would say of each job; without them it is asked job by job. When several
    plugins have the hook, all are asked in any case: the first answer decides.

    A domain whose order comes out as it was has nothing to look at: what is booked there stands.
    """
    if state.queue_key is None:
        return
    edition = state.edition
    domains: dict[str, Domain] = {}
    if answers is not None and state.one_key:
        pool = None
        for job, answer in zip(jobs, answers, strict=True):
            # As the scheduler writes down what it is answered.
            job.order = (rank(job), (0, *answer), *submission(job))
            job.edition = edition
            if job.choices:
                domains.update({domain.name: domain for domain in domains_of(job)})
            elif job.pool is not pool and job.status is _PENDING:
                pool = job.pool
                domains[pool.domain.name] = pool.domain
    else:
        for job in jobs:
            give_order(state, job)
            if job.status is _PENDING:
                domains.update({domain.name: domain for domain in domains_of(job)})
    for domain in domains.values():
        before = domain.queue
        try:
            after = sorted(before, key=_order)
        except TypeError as error:
            state.anomalies.append(f"pool {domain.name} has queue keys that do not compare: {error}")
            for job in before:
                job.order = (rank(job), (1,), *submission(job))
            after = sorted(before, key=_order)
        # It goes by the keys as they were.
        domain.by_size = None
        if after != before:
            domain.queue = after
            domain.touch()


def drop(queue: list[Job], job: Job) -> None:
    """Take one job out of a sorted queue."""
    del queue[place_of(queue, job)]


def place_of(queue: Sequence[Job], job: Job) -> int:
    """The place of a job in a queue, 0 the first; ValueError if it is not there. Fast where the queue is
    sorted."""
    at = bisect_left(queue, job.order, key=_order)
    return at if at < len(queue) and queue[at] is job else queue.index(job)


def stands_in(queue: Sequence[Job], job: Job) -> bool:
    """Whether a job is in a queue. As fast as :func:`place_of`."""
    try:
        place_of(queue, job)
    except ValueError:
        return False
    return True
