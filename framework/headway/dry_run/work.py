"""What a dry run runs: a machine, and what its users want of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headway.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from headway.config import Config
    from headway.config.emulation import TracePoolsConfig
    from headway.dry_run.asked import Asked, Filters
    from headway.dry_run.site import Site
    from headway.model import ClusterDescription
    from headway.results import Refused
    from headway.workload import Trace, TraceCommand, TraceJob
    from headway.workload.jobs import Follows


@dataclass(frozen=True)
class Work:
    """A machine, and what its users want of it."""

    #: The trace's path, or the model's name.
    name: str
    cluster: ClusterDescription
    jobs: Sequence[TraceJob]
    commands: Sequence[TraceCommand]
    refused: Sequence[Refused]
    trace: Trace | None = None
    #: The jobs that follow another job, by id.
    chains: Mapping[str, Follows] = field(default_factory=dict)
    #: Whether the chains come from think times, because the trace names none.
    inferred: bool = False
    #: The second of the epoch at which its time begins.
    epoch: float = 0.0


def first_pool(cluster: ClusterDescription) -> tuple[str, int]:
    """Where the jobs go: the pool's name, and its processors."""
    pool = cluster.pools[0]
    return pool.name, pool.processors or sum(n.processors for n in cluster.nodes)


def completed(work: Work, asked: Asked, site: Site) -> Work:
    """The work with what files say of its jobs, which no trace format has."""
    from headway.workload.cpu_use import jobs_with_cpu_use, read_cpu_use
    from headway.workload.data_use import jobs_with_data, read_data_use
    from headway.workload.licence_use import jobs_with_licences, read_licence_use
    from headway.workload.switch_use import jobs_with_switches, read_switch_use
    from headway.workload.whole_nodes import jobs_on_whole_nodes

    jobs, said = work.jobs, asked.work
    if said.cpu_path is not None:
        jobs = jobs_with_cpu_use(jobs, read_cpu_use(said.cpu_path))
    if said.licences_path is not None:
        jobs = jobs_with_licences(jobs, read_licence_use(said.licences_path))
    if said.data_path is not None:
        sites = work.cluster.sites
        known = None if sites is None else {one.name for one in sites.datasets}
        jobs = jobs_with_data(jobs, read_data_use(said.data_path, known))
    if said.switches_path is not None:
        jobs = jobs_with_switches(jobs, read_switch_use(said.switches_path))
    if site.config.emulation.whole_nodes and work.cluster.nodes:
        jobs = jobs_on_whole_nodes(jobs)
    return replace(work, jobs=jobs)


# ---------------------------------------------------------------------- a trace


def traced(path: Path, asked: Asked, site: Site) -> Work:
    """The jobs of a trace's file, filtered, with the estimates and the chains that were asked for."""
    from headway.workload import read_trace

    return of_trace(read_trace(path, strict=asked.work.strict), asked, site)


def warn_of_problems(trace: Trace, asked: Asked, site: Site) -> None:
    """Say what was wrong with a trace."""
    from headway.workload.formats import problems

    for line in problems(trace, asked.outputs.verbose):
        site.warn(line)


def of_trace(trace: Trace, asked: Asked, site: Site) -> Work:
    """The same of a trace that has been read."""
    from headway.workload import estimated_trace, filters
    from headway.workload.chains import chains_of, recorded_chains, with_chains

    said = asked.work
    inferred = False
    if said.in_chains:
        inferred = not recorded_chains(trace)
        trace = with_chains(trace)
    trace = filtered(trace, asked.filters)
    warn_of_problems(trace, asked, site)
    if site.estimates is not None:
        trace = estimated_trace(trace, site.estimates, site.seed)
    cluster = _machine(site.config, trace, asked.machine.processors)
    if asked.filters.scale_sizes is not None:
        trace = filters.scale_sizes(trace, asked.filters.scale_sizes, first_pool(cluster)[1])
    pools, where = site.config.emulation.trace_pools, f"{site.config.source}: emulation.trace_pools"
    work = fitting(trace, cluster, said.limit, pools, where)
    if said.in_chains:
        work = replace(work, chains=chains_of(trace, work.jobs), inferred=inferred)
    return work


def filtered(trace: Trace, asked: Filters) -> Trace:
    """The trace through the filters that were asked for, in the order of the command's help; sizes are scaled
    when the machine is known."""
    from headway.workload import filters

    if asked.first is not None:
        trace = filters.first(trace, asked.first)
    if asked.last is not None:
        trace = filters.last(trace, asked.last)
    if asked.window is not None:
        trace = filters.window(trace, *asked.window)
    if asked.scale_arrivals is not None:
        trace = filters.scale_arrivals(trace, asked.scale_arrivals)
    if asked.scale_runtimes is not None:
        trace = filters.scale_runtimes(trace, asked.scale_runtimes)
    return trace


def _machine(config: Config, trace: Trace, processors: int | None) -> ClusterDescription:
    """The emulated cluster: ``processors``, else as configured, else as the trace's header says."""
    from headway.model import ClusterDescription

    described = config.emulated_clusters() if processors is None else None
    if described is None:
        described = config.emulation.description(processors)
    if described is not None:
        return described
    if trace.max_processors is None:
        raise UserError(
            f"{trace.path}: the header names no machine size (MaxProcs or MaxNodes); give --processors N"
        )
    return config.emulation.with_licences(ClusterDescription.flat(trace.max_processors, name="emulated"))


def fitting(
    trace: Trace, cluster: ClusterDescription, limit: int | None, pools: TracePoolsConfig | None, where: str
) -> Work:
    """A trace's jobs for this machine; :class:`UserError` if none can run on it.

    ``pools``: which pool each job goes to, and ``where`` that is configured."""
    from headway.workload.trace_pools import emulated_jobs

    _, size = first_pool(cluster)
    sizes = cluster.pool_sizes()
    chosen = None
    if pools is not None:
        size = max(sizes.values())
        chosen = pools.chosen(where)
    jobs, commands, refused = emulated_jobs(trace, size, sizes, chosen, limit=limit)
    if not jobs:
        raise UserError(f"{trace.path}: none of its {len(trace.records)} jobs can run on {size} processors")
    return Work(trace.path, cluster, jobs, commands, refused, trace, epoch=trace.epoch or 0.0)


# ---------------------------------------------------------------------- a model


def drawn(asked: Asked, site: Site) -> Work:
    """A model's jobs on the machine that is configured or asked for, else on the model's own."""
    from headway.dry_run.models import drawn
    from headway.model import ClusterDescription
    from headway.results import Refused
    from headway.workload import estimated_workload

    model, limit = asked.work.workload, asked.work.limit
    assert model is not None
    cluster = site.config.emulated_clusters() or site.config.emulation.description(asked.machine.processors)
    defaults = {}
    if cluster is not None:
        pool, size = first_pool(cluster)
        defaults = {"processors": size, "pool": pool}
    workload = drawn(site.catalogue, model, asked.work.settings, site.seed, defaults)
    if site.estimates is not None:
        workload = estimated_workload(workload, site.estimates, site.seed)
    if cluster is None:
        if workload.processors is None:
            raise UserError(f"--workload {model}: the model names no machine size; give --processors N")
        cluster = ClusterDescription.flat(workload.processors, name="emulated")
    _, size = first_pool(cluster)
    jobs = workload.jobs if limit is None else workload.jobs[:limit]
    too_large = f"larger than the pool ({size} processors)"
    refused = [Refused(job.job.id, too_large) for job in jobs if job.job.request.processors > size]
    fitting = [job for job in jobs if job.job.request.processors <= size]
    if not fitting:
        raise UserError(f"--workload {model}: none of its {len(jobs)} jobs can run on {size} processors")
    ids = {job.job.id for job in fitting}
    commands = [command for command in workload.commands if command.job_id in ids]
    name = " ".join([model, *asked.work.settings, f"seed={site.seed}"])
    return Work(name, cluster, fitting, commands, refused)
