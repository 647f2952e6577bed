"""A dry run of a copy of the live queue: what will happen."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headway.cli.common import reaching_the_cluster, wall_clock
from headway.cli.dry_run.told import report
from headway.cli.earlier_runs import first_submissions
from headway.cli.known_replicas import known_replicas
from headway.cli.log_output import set_up_log

if TYPE_CHECKING:
    from headway.dry_run.asked import Asked
    from headway.dry_run.site import Site
    from headway.results import RunResult


def run_copy(asked: Asked, site: Site) -> None:
    """Copy the configured cluster, run the copy into the future, and say when jobs are expected to start."""
    from headway.dry_run.written import Finished
    from headway.plugins.failures import refuse_failed

    assert asked.plugins.config_path is not None
    with reaching_the_cluster(asked.plugins.config_path):
        result, copied_at = _run(asked, site)
    result.class_bounds = site.config.metrics.class_bounds()
    report(Finished.of(result, site, []), asked.outputs, live_since=copied_at)
    refuse_failed(result.failures)


def _run(asked: Asked, site: Site) -> tuple[RunResult, float]:
    """The run, and when the copy was made (epoch second)."""
    from headway.cli.screen import job_progress
    from headway.config import live_adapter
    from headway.dry_run.latencies import measured_latencies
    from headway.emulation import emulate
    from headway.emulation.live_copy import Copy
    from headway.plugins import Plugins

    config, limit = site.config, asked.work.limit
    set_up_log(config.log)
    with live_adapter(config, read_only=True) as adapter:
        adapter.submitted_before(partial(first_submissions, config))
        adapter.tell_words(Plugins.load(site.plugins, site.catalogue, None).job_words)
        copy = Copy(adapter, known_replicas(config))
    jobs = copy.jobs if limit is None else copy.jobs[: limit + len(copy.running)]
    with job_progress(site.label, jobs) as advance:
        result = emulate(
            config.with_energy(copy.cluster, asked.machine.energy),
            jobs,
            site.plugins,
            site.catalogue,
            label=site.label,
            seed=site.seed,
            keep_decisions=True,
            on_cycle=advance,
            clock=wall_clock,
            start=copy.now,
            running=copy.running,
            power=copy.power,
            cycle=config.cycle,
            wait_for_down_nodes=config.wait_for_down_nodes,
            tiers=config.tiers,
            latencies=measured_latencies(config),
            about={"workload": f"copy of cluster {copy.cluster.name} at {wall_clock(copy.now)}"},
        )
    return result, copy.now
