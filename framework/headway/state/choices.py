"""Jobs that were sent to several pools: they wait in all of them, and run in the first that has room.

Such a job is one record. It stands in the queue of each of its pools that could start it, and *faces* one
pool at a time: ``job.pool`` is the pool that is being looked at while a pool's pass or a question about that
pool goes on, the first pool whose queue it stands in at other times, and the pool that it runs in once it has
started. So whatever reads ``job.pool`` is right without knowing of the others. What keeps the job out of one
pool alone (an obstacle, a barrier) stands in that pool's :class:`.records.Choice`.

Jobs of one pool have no choices, and nothing here concerns them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from headway.decisions import Decision, Start
from headway.errors import StateError
from headway.model import JobDescription, Placement
from headway.state.facts import Facts
from headway.state.records import Barrier, Choice, Job, Obstacle, PoolState


def choices_of(state: Facts, description: JobDescription) -> tuple[Choice, ...]:
    """The job's pools in its user's order, of those that there are; () if that is not more than one."""
    if not description.further_pools:
        return ()
    names = dict.fromkeys(description.pools)
    pools = [pool for name in names if (pool := state.pools.get(name)) is not None]
    return tuple(map(Choice, pools)) if len(pools) > 1 else ()


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


def may_run_in(job: Job, pool: PoolState) -> bool:
    """Whether the pool is one of the job's."""
    return job.pool is pool or any(choice.pool is pool for choice in job.choices)


def facing(job: Job) -> Choice:
    """The choice that the job, one of several pools, faces."""
    return next(choice for choice in job.choices if choice.pool is job.pool)


def face_home(jobs: Iterable[Job]) -> None:
    """Nothing is asked of a pool any more: jobs that wait face the first pool whose queue they stand in."""
    for job in jobs:
        if job.choices and job.entries is None:
            pools = pools_of(job)
            job.pool = next((pool for pool in pools if job.id in pool.shared), pools[0])


def facing_each(job: Job) -> Iterator[Choice]:
    """The choices of a job that waits, while it faces each of them."""
    for choice in job.choices:
        job.pool = choice.pool
        yield choice
    face_home((job,))


def face_start(state: Facts, job: Job, placement: Placement, named: str) -> None:
    """The job, one of several pools, starts: it faces the pool that is named, or that has the nodes."""
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
    """Raise :class:`StateError` if the job, one of several pools, may not start in the one that it faces."""
    if job.id not in job.pool.shared:
        why = why_not_in(facing(job)) or "it is not in that queue"
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


def why_not_in(choice: Choice) -> str:
    """Why the job is not in that pool's queue, as far as the pool is the reason; "" if it is not."""
    if not choice.pool.open:
        return f"pool {choice.pool.name!r} is closed"
    if choice.obstacle is not None:
        return str(choice.obstacle)
    return "" if choice.barrier is None else str(choice.barrier)


def in_each(choices: Iterable[Choice]) -> str:
    """For each pool why the job is not in its queue, for a person."""
    return "; ".join(f"in pool {choice.pool.name!r}: {why_not_in(choice)}" for choice in choices)


def common_obstacle(choices: Iterable[Choice]) -> Obstacle | None:
    """What keeps the job out of all its pools together; None if one of them could hold it."""
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
