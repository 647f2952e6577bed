"""A state told anew: the description and the events from which another scheduler comes to know the same.

What a cluster's first look would tell a scheduler that begins now. Decisions that no event confirms yet are
told as far as there is an event for them: a start is on its way; that a pending job is bound for another pool
is not told. So a scheduler with other plugins begins as after a reload of the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import msgspec

from headway import events as ev
from headway.model import ClusterDescription, Dependency, JobDescription
from headway.model.sites import Replica
from headway.state.dependencies import is_met
from headway.state.facts import Facts
from headway.state.records import ON_NODES, Job, Status


def cluster_now(described: ClusterDescription, state: Facts) -> ClusterDescription:
    """The cluster with the pools, nodes, reservations and licences that it has now."""
    nodes = state.nodes
    return msgspec.structs.replace(
        described,
        pools=tuple(pool.description for pool in state.pools.values()),
        nodes=tuple(
            msgspec.structs.replace(node, available=bool(nodes.available[nodes.index[name]]))
            for name, node in nodes.descriptions.items()
        ),
        reservations=tuple(state.reservations.values()),
        licences=tuple(state.licences.total.items()) if state.licences is not None else (),
    )


def description_now(state: Facts, job: Job) -> JobDescription:
    """Its description, with what it still waits for."""
    return msgspec.structs.replace(job.description, held=job.held, dependencies=_unmet(state, job))


def _unmet(state: Facts, job: Job) -> tuple[Dependency, ...]:
    """The dependencies that keep a job waiting."""
    description = job.description
    unmet = tuple(each for each in description.dependencies if not is_met(state, job, each))
    return () if description.any_dependency and len(unmet) < len(description.dependencies) else unmet


def described_anew(state: Facts) -> ClusterDescription:
    """The cluster as a scheduler meets it that begins now, with the copies of datasets that there are."""
    cluster = cluster_now(state.cluster, state)
    if state.catalogue is None or cluster.sites is None:
        return cluster
    there = [
        Replica(dataset, site, since)
        for dataset, sites in state.catalogue.replicas.items()
        for site, since in sites.items()
    ]
    return msgspec.structs.replace(cluster, sites=cluster.sites.with_replicas(there))


def told_anew(state: Facts) -> list[ev.Event]:
    """The events that tell such a scheduler of the rest, for one step at ``state.now``.

    Jobs come in the order in which they came here, so that ties are broken as they are here.
    """
    now = state.now
    told: list[ev.Event] = []
    if state.site_policy is not None:
        told.append(ev.SitePolicyChanged(-inf, state.site_policy))
    told += [ev.NodePowerChanged(now, node, power) for node, power in state.nodes.power.items()]
    told += [ev.ClusterSilent(since, name) for name, since in state.silent.items()]
    if state.catalogue is not None:
        told += [
            ev.DatasetCopying(now, one.dataset, one.site, one.source, one.done)
            for one in state.catalogue.copies.values()
        ]
    came = -inf
    for job in sorted(state.jobs.values(), key=lambda job: job.seq):
        # Not before the job that came before it: events are taken in the order of their times.
        came = max(came, min(job.submit_time, now))
        told.append(ev.JobSubmitted(came, description_now(state, job), job.hold_reason if job.held else ""))
        if job.status in ON_NODES:
            told += _on_nodes(job, max(came, now))
    return told


def _on_nodes(job: Job, now: float) -> Iterator[ev.Event]:
    """How far a job on nodes is. All of it is told as of ``now``, but its start."""
    pool = job.pool.name if job.choices else ""
    start = now if job.start_time is None else min(job.start_time, now)
    if job.status is Status.STARTING:
        yield ev.JobReleasing(start, job.id, job.placement, job.frequency, pool)
        return
    yield ev.JobStarted(start, job.id, job.placement, job.tier, job.frequency, pool)
    if job.pace is not None:
        yield ev.JobPaceChanged(now, job.id, job.done(now), job.pace.rate, job.pace.resumes)
    elif job.paused or job.suspended_since is not None:
        yield ev.JobPaceChanged(now, job.id, job.done(now), 1.0)
    if job.measured_cpu is not None:
        yield ev.JobUsageMeasured(now, job.id, job.measured_cpu)
    if job.status is Status.SUSPENDED:
        yield ev.JobSuspended(now, job.id)
    elif job.leaving and not job.aside:
        yield ev.JobLeaving(now, job.id)
