"""The traces of several clusters, each on its own cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headway.dry_run.work import Work, filtered, fitting, warn_of_problems
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.dry_run.asked import Asked
    from headway.dry_run.site import Site
    from headway.model import ClusterDescription
    from headway.workload.jobs import TraceJob


def of_each_cluster(cluster: ClusterDescription, asked: Asked, site: Site) -> Work:
    """The jobs of each cluster's ``emulation.trace``, by the time of submission. All traces begin at the same
    moment, which is the beginning of the first.

    :class:`UserError` if no cluster has a trace, and for chains of jobs.
    """
    from headway.workload import estimated_trace, read_trace

    if asked.work.in_chains:
        raise UserError("--feedback chains: expected one --trace, found several clusters with traces")
    config = site.config
    traced = {name: one.emulation for name, one in config.clusters.items() if one.emulation is not None}
    together: list[TraceJob] = []
    found = Work("", cluster, [], [], [])
    for name, emulation in traced.items():
        if emulation.trace is None:
            continue
        trace = filtered(read_trace(config.beside(emulation.trace), strict=asked.work.strict), asked.filters)
        warn_of_problems(trace, asked, site)
        if site.estimates is not None:
            trace = estimated_trace(trace, site.estimates, site.seed)
        described = emulation.description()
        assert described is not None
        where = f"{config.source}: clusters.{name}.emulation.trace_pools"
        work = fitting(trace, described, asked.work.limit, emulation.trace_pools, where)
        together += [_of_site(one, name) for one in work.jobs]
        epoch = found.epoch or work.epoch
        refused = [replace(one, job_id=f"{name}:{one.job_id}") for one in work.refused]
        whole = f"{found.name}+{name}".lstrip("+")
        found = replace(found, refused=[*found.refused, *refused], name=whole, epoch=epoch)
    if not together:
        raise UserError(
            f"{config.source}: clusters: expected a cluster with emulation.trace, or --trace FILE, found "
            "neither"
        )
    return replace(found, jobs=sorted(together, key=lambda one: one.job.submit_time))


def _of_site(one: TraceJob, name: str) -> TraceJob:
    """A job in the names that it has in a federation; it has no row in a trace of all."""
    import msgspec

    job = one.job
    described = msgspec.structs.replace(
        job,
        id=f"{name}:{job.id}",
        array_id=f"{name}:{job.array_id}" if job.array_id else "",
        pool=f"{name}:{job.pool}",
        further_pools=tuple(f"{name}:{pool}" for pool in job.further_pools),
        dependencies=tuple(
            msgspec.structs.replace(each, job_id=f"{name}:{each.job_id}") for each in job.dependencies
        ),
    )
    return msgspec.structs.replace(one, job=described, row=-1)
