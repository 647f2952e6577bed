"""Jobs that are being moved, and have not left yet.

On a cluster whose moves take time (:attr:`headway.model.ClusterDescription.moves_take_time`) a job that is to
be elsewhere, or in the other tier, has its processors for as long as its move takes, and for good if the move
fails. So both places are its own until the cluster tells: no job is started where it still is, and it can go
back there.
"""

from __future__ import annotations

from collections.abc import Iterator

from headway.errors import StateError
from headway.model import Placement
from headway.resources import Free, Located
from headway.state.facts import Facts
from headway.state.occupation import FOREGROUND
from headway.state.records import Job


def guard_still_there(state: Facts, job: Job, placement: Placement, tier: str) -> None:
    """Raise :class:`StateError` if jobs that have not left yet leave the job too little of these nodes."""
    place = state.nodes.locate(placement)
    mine = set(place.nodes)
    near = [
        (other, source, before) for other, source, before in _still_there(state)
        if other is not job and not mine.isdisjoint(source.nodes)
    ]  # fmt: skip
    if not near:
        return
    left = (state.nodes.free if tier == FOREGROUND else state.nodes.free_behind()).copy()
    for other, source, before in near:
        left = left.at_most(_still_at(state, left, other, source, before, tier))
        alone = job.request.exclusive or other.request.exclusive
        if alone or not left.has(job.request, place.nodes, place.counts):
            raise StateError(f"job {job.id} cannot start there yet: job {other.id} is still there")


def _still_at(state: Facts, left: Free, other: Job, source: Located, before: str, tier: str) -> Free:
    """What ``left`` of a tier would be if the other job were still where it was, and not where it is to be.
    It is in one of the two places; of a node that is in both places it has its processors once."""
    there = left.copy()
    if other.taken is not None:
        target = state.nodes.locate(other.placement)
        there.take_at(other.taken, target, -1)
        if other.tier != tier or other.lends:
            there.processors[target.nodes] -= target.counts
    there.take_at(other.request, source)
    if before != tier:
        there.processors[source.nodes] += source.counts
    return there


def nodes_still_taken(state: Facts) -> list[int]:
    """The indices of the nodes on which a job is that has not left yet."""
    return [node for _, source, _ in _still_there(state) for node in source.nodes]


def settled(state: Facts, job: Job) -> None:
    """It is known where the job is: the domains whose jobs may want the other place are looked at."""
    if state.before_move.pop(job.id, None) is not None and state.cluster.moves_take_time:
        job.domain.touch()
        for domain, _ in job.entries or ():
            domain.touch()


def _still_there(state: Facts) -> Iterator[tuple[Job, Located, str]]:
    """The jobs that are still there: where, and in which tier."""
    if not state.cluster.moves_take_time:
        return
    for job_id, (placement, tier, _) in state.before_move.items():
        job = state.jobs.get(job_id)
        if job is not None:
            yield job, state.nodes.locate(placement), tier
