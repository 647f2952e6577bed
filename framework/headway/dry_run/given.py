"""Which jobs a dry run runs: those of a trace, of several traces, or of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headway.dry_run.several import of_each_cluster
from headway.dry_run.work import Work, completed, drawn, of_trace, traced
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.dry_run.asked import Asked
    from headway.dry_run.site import Site


def work_of(asked: Asked, site: Site) -> Work:
    """The jobs of the trace or model that was asked for, on their machine.

    :class:`UserError` if none of the jobs can run on it.
    """
    import msgspec

    work = completed(_given(asked, site), asked, site)
    cluster = site.config.with_energy(work.cluster, asked.machine.energy)
    if any(one.adapter != "emulated" for _, one in site.config.clusters_by_place()):
        cluster = msgspec.structs.replace(cluster, stands_in=True)
    if asked.outputs.verbose:
        for refused in work.refused:
            where = f"{work.name}:{refused.line}" if refused.line else work.name
            site.warn(f"{where}: job {refused.job_id} refused: {refused.reason}")
    return replace(work, cluster=cluster)


def _given(asked: Asked, site: Site) -> Work:
    """The jobs of the model or trace that was asked for, else of those that the configuration names."""
    config, said = site.config, asked.work
    if said.workload is not None:
        return drawn(asked, site)
    if said.trace_path is not None:
        return traced(said.trace_path, asked, site)
    if said.trace is not None:
        return of_trace(said.trace, asked, site)
    if not config.names_traces():
        raise UserError(
            f"{config.source}: expected a trace (emulation.trace), --trace FILE, --workload MODEL or "
            "--from-cluster, found none"
        )
    several = config.emulated_clusters()
    if config.emulation.trace is None and several is not None:
        return of_each_cluster(several, asked, site)
    return traced(config.trace_path(), asked, site)
