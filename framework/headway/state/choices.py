"""Jobs that were sent to several pools: they wait in all of them, and run in the first that has room.

Such a job is one record. It stands once in the queue of each domain that has a pool which could start it, and
*faces* one pool at a time. While a domain's pass or a question about a pool goes on, ``job.pool`` is the pool
that is being asked about; at other times it is the first pool that could start the job; once the job has
started, it is the pool that the job runs in. So whatever reads ``job.pool`` is right without knowing of the
job's other pools. What keeps the job out of one pool alone (an obstacle, a barrier) stands in that pool's
:class:`.records.Choice`.

A pool of a higher tier comes first, as Slurm has it for ``sbatch -p a,b``; then the order of the user's list
counts.

Jobs of one pool have no choices, and nothing here concerns them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from msgspec.structs import replace

from headway.decisions import Decision, Start
from headway.errors import StateError
from headway.model import JobDescription, Placement
from headway.state.facts import Facts
from headway.state.reasons import in_each, why_not_in
from headway.state.records import Barrier, Choice, Domain, Job, Obstacle, PoolState

#: What an attempt gives.
T = TypeVar("T")


def choices_of(state: Facts, description: JobDescription) -> tuple[Choice, ...]:
    """The job's pools that exist, by tier, then in its user's order; () if only the first pool that it names
    exists."""
    if not description.further_pools:
        return ()
    names = dict.fromkeys(description.pools)
    pools = [pool for name in names if (pool := state.pools.get(name)) is not None]
    pools.sort(key=lambda pool: -pool.tier)
    alone = len(pools) == 1 and pools[0].name == description.pool
    return () if alone else tuple(map(Choice, pools))


def choose(state: Facts, job: Job) -> None:
    """Give the job, which stands in no queue, the choices that follow from its description."""
    job.choices = choices_of(state, job.description)
    if job.choices:
        state.in_several.add(job.id)
    else:
        state.in_several.discard(job.id)


def pools_of(job: Job) -> tuple[PoolState, ...]:
    """All pools in which the job may run."""
    return tuple(choice.pool for choice in job.choices) if job.choices else (job.pool,)


def domains_of(job: Job) -> tuple[Domain, ...]:
    """The domains of these pools, each once."""
    if not job.choices:
        return (job.pool.domain,)
    return tuple(dict.fromkeys([choice.pool.domain for choice in job.choices]))


def ways(job: Job, domain: Domain) -> tuple[PoolState, ...]:
    """The pools of the domain that could start the job, which stands in its queue, in their order."""
    if not job.choices:
        return (job.pool,)
    return tuple([c.pool for c in job.choices if c.pool.domain is domain and not why_not_in(c)])


def in_any_way(job: Job, domain: Domain, attempt: Callable[[], T | None]) -> T | None:
    """What the attempt gives in the first of the job's pools in the domain where it gives anything; the job,
    which waits, faces that pool from then on. None: it gives nothing in any of them."""
    if not job.choices:
        return attempt()
    for pool in ways(job, domain):
        job.pool = pool
        if (found := attempt()) is not None:
            return found
    face_domain((job,), domain)
    return None


@contextmanager
def facing_pool(job: Job, pool: PoolState) -> Iterator[None]:
    """A question about one pool of a waiting job: the job faces that pool meanwhile."""
    faced, job.pool = job.pool, pool
    try:
        yield
    finally:
        job.pool = faced


def queued_for(pool: PoolState) -> list[Job]:
    """The jobs of its domain's queue that could start in the pool, in service order."""
    domain = pool.domain
    if len(domain.pools) == 1:
        return domain.queue
    return [job for job in domain.queue if pool in ways(job, domain)]


def may_run_in(job: Job, pool: PoolState) -> bool:
    """Whether the pool is among the job's pools."""
    return job.pool is pool or any(choice.pool is pool for choice in job.choices)


def facing(job: Job) -> Choice:
    """The choice that the job, which has several pools, faces."""
    return next(choice for choice in job.choices if choice.pool is job.pool)


def face_domain(jobs: Iterable[Job], domain: Domain) -> None:
    """A pass of the domain begins: jobs of its queue face the first of its pools that could start them."""
    for job in jobs:
        if possible := ways(job, domain):
            job.pool = possible[0]


def face_home(jobs: Iterable[Job]) -> None:
    """Nothing is asked of a pool any more: jobs that wait face the first pool that could start them."""
    for job in jobs:
        if job.choices and job.entries is None:
            could = (c.pool for c in job.choices if job.id in c.pool.domain.shared and not why_not_in(c))
            job.pool = next(could, job.choices[0].pool)


def facing_each(job: Job) -> Iterator[Choice]:
    """The choices of a job that waits, while it faces each of them."""
    for choice in job.choices:
        job.pool = choice.pool
        yield choice
    face_home((job,))


def face_start(state: Facts, job: Job, placement: Placement, named: str) -> None:
    """The job, which has several pools, starts: it faces the pool that is named, or that has the nodes."""
    if named:
        pool = state.pools.get(named)
        if pool is not None and may_run_in(job, pool):
            job.pool = pool
        return
    names = [name for name, _ in placement]
    if not names or _has(state, job.pool, names):
        return
    job.pool = next((pool for pool in pools_of(job) if _has(state, pool, names)), job.pool)


def guard_choice(job: Job) -> None:
    """Raise :class:`StateError` if the job, which has several pools, may not start in the pool it faces."""
    why = why_not_in(facing(job))
    if why or job.id not in job.domain.shared:
        why = why or "it is not in that queue"
        raise StateError(f"job {job.id} may not start in pool {job.pool.name!r}: {why}")


def name_pools(state: Facts, decisions: Iterable[Decision]) -> list[Decision]:
    """The decisions; each start of a job of several pools says in which of them it is."""
    return [
        replace(decision, pool=state.jobs[decision.job_id].pool.name)
        if isinstance(decision, Start) and not decision.pool and decision.job_id in state.in_several
        else decision
        for decision in decisions
    ]


def _has(state: Facts, pool: PoolState, nodes: Iterable[str]) -> bool:
    known = state.nodes.descriptions
    return not pool.flat and all(name in known and pool.name in known[name].pools for name in nodes)


def common_obstacle(choices: Iterable[Choice]) -> Obstacle | None:
    """What keeps the job out of all its pools together; None if any of its pools could hold it."""
    found = [(choice.pool, choice.obstacle) for choice in choices]
    reasons = [f"in pool {pool.name!r}: {each.why}" for pool, each in found if each is not None]
    if len(reasons) < len(found):
        return None
    passing = any(each is not None and each.passing for _, each in found)
    return Obstacle("; ".join(dict.fromkeys(reasons)), passing)


def common_barrier(choices: tuple[Choice, ...]) -> Barrier | None:
    """What may be lifted of that which keeps the job out of all its pools; None if nothing may."""
    first = next((choice.barrier for choice in choices if choice.barrier is not None), None)
    return None if first is None else Barrier(lambda: in_each(choices), first.key)
