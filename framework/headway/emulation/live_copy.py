"""A copy of a live cluster, as the beginning of an emulation.

It is made of the state after all events of the first look, so it holds what is true at the end of them,
whatever they were: of jobs that are over there is nothing left.

Copies of datasets are handed in: the batch systems know nothing of them.

What is unknown is assumed: each job runs for its estimate, a suspended job goes on at once, and a job that
is leaving its nodes is gone. A job that is held or waits for something unknown stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headway.adapter import ClusterAdapter
from headway.events import DatasetCopying, Event, in_order
from headway.model import ClusterDescription
from headway.model.sites import Replica
from headway.state import Job, State
from headway.state.records import ON_NODES, submission
from headway.state.retold import cluster_now, description_now
from headway.workload.jobs import Begun, TraceJob


class Copy:
    """A live cluster's queue and nodes."""

    def __init__(self, adapter: ClusterAdapter, replicas: Sequence[Replica] = ()) -> None:
        """Read the cluster once. ``replicas``: copies of datasets, which no batch system tells of.

        Raises :class:`headway.errors.Failure` if the cluster does not answer."""
        described = _with_replicas(adapter.describe(), replicas)
        moment = adapter.wait(None)
        self.now: float
        #: The first look, with what is over as well.
        self.events: Sequence[Event]
        self.now, events = moment if moment is not None else (0.0, [])
        self.events = [*events, *_on_their_way(described, self.now)]
        state = State(described)
        state.now = self.now
        state.apply(in_order(self.events))
        self.cluster = cluster_now(described, state)
        #: Nodes that are not on -> their power state.
        self.power = dict(state.nodes.power)
        # As the scheduler numbers them: an emulation's jobs come in order of submission.
        there = sorted(state.jobs.values(), key=submission)
        self.jobs = [_trace(state, job) for job in there]
        #: What runs.
        self.running = [begun_now(state, job) for job in there if job.status in ON_NODES]


def _with_replicas(described: ClusterDescription, replicas: Sequence[Replica]) -> ClusterDescription:
    if described.sites is None or not replicas:
        return described
    return msgspec.structs.replace(described, sites=described.sites.with_replicas(replicas))


def _on_their_way(described: ClusterDescription, now: float) -> list[Event]:
    """The copies that are on their way, as they are told."""
    replicas = described.sites.replicas if described.sites is not None else ()
    return [
        DatasetCopying(now, one.dataset, one.site, one.source, one.done) for one in replicas if one.source
    ]


def _trace(state: State, job: Job) -> TraceJob:
    """The job as it is now, to run for its estimate; for what it has done, if it is on its way out."""
    runtime = job.done(state.now) if job.leaving else job.request.walltime
    return TraceJob(description_now(state, job), runtime)


def begun_now(state: State, job: Job) -> Begun:
    """How far a job on nodes is."""
    now = state.now
    start = now if job.start_time is None else min(job.start_time, now)
    pool = job.pool.name if job.choices else ""
    return Begun(job.id, now - start, job.placement, job.tier, job.frequency, job.done(now), pool)
