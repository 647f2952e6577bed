"""A look at the whole cluster -> one queue, as its users see it. Pure.

Decisions: processors of nodes that are out of service, or in a reservation that has begun, are not free; a
waiting job counts if it is not held and waits for no other job and no date; the batch system's priority
orders them, then the time of submission.
"""

from __future__ import annotations

from collections import defaultdict

from headway.adapter.migration import ON_NODES
from headway.adapter.user_side import Listed, Queue
from headway.resources import memory_on_node
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob


def queue_of(snapshot: Snapshot, pool: str) -> Queue:
    """The queue ``pool``."""
    now = snapshot.time
    kept = {
        node for one in snapshot.reservations.values() if one.start <= now < one.end for node in one.nodes
    }
    room = {
        node.name: node.processors
        for node in snapshot.nodes.values()
        if pool in node.pools and node.available and node.name not in kept
    }
    used: dict[str, int] = defaultdict(int)
    taken: dict[str, int] = defaultdict(int)
    ends: list[tuple[float, int]] = []
    for job in snapshot.jobs.values():
        if job.state not in ON_NODES:
            continue
        here = 0
        for node, processors in job.placement:
            used[node] += processors
            taken[node] += memory_on_node(job.job.request, processors)
            here += processors if node in room else 0
        if here:
            ends.append((_end(job, now), here))
    rest = {node: max(0, processors - used[node]) for node, processors in room.items()}
    memory = {node: snapshot.nodes[node].memory for node in room}
    waiting = sorted(
        (job for job in snapshot.jobs.values() if pool in job.job.pools and _may_start(job, now)),
        key=lambda job: (-(job.job.priority or 0.0), job.job.submit_time, job.job.id),
    )
    return Queue(
        now, sum(rest.values()), tuple(_listed(job, now) for job in waiting), tuple(sorted(ends)),
        {key: _listed(job, now) for key, job in snapshot.jobs.items()},
        tuple(
            (count, max(0, memory[node] - taken[node]) if memory[node] else None)
            for node, count in rest.items()
            if count
        ),
    )  # fmt: skip


def _may_start(job: SnapshotJob, now: float) -> bool:
    begin = job.job.begin_time
    return (
        job.state == "pending"
        and not job.held_by
        and not job.job.dependencies
        and (begin is None or begin <= now)
    )


def _end(job: SnapshotJob, now: float) -> float:
    start = job.start_time if job.start_time is not None else now
    return start + job.job.request.walltime


def _listed(job: SnapshotJob, now: float) -> Listed:
    started = job.state in ON_NODES
    return Listed(
        job.job.id, job.job.name, job.job.user, job.job.request.processors, job.state,
        _end(job, now) if started else None, job.exit_code, job.reason,
    )  # fmt: skip
