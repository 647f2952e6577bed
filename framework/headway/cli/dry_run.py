"""``headway dry-run``: what would have happened, or what will."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.common import (
    config_option,
    console,
    contributions,
    job_progress,
    messages,
    plugin_option,
    wall_clock,
)
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.config import Config
    from headway.model import ClusterDescription
    from headway.plugins import Catalogue, PluginConfig
    from headway.results import RunResult
    from headway.workload import Trace


@click.command("dry-run")
@click.option("--trace", "trace_path", type=click.Path(path_type=Path),
              help="Trace in Standard Workload Format, .gz or plain.")  # fmt: skip
@config_option
@click.option("--from-cluster", is_flag=True, help="Start from a copy of the configured cluster's queue and nodes.")
@click.option("--processors", type=click.IntRange(min=1), help="Machine size; default: the trace's header.")
@click.option("--policy", help="Policy to run instead of the configured plugins; default: easy.")
@plugin_option
@click.option("--limit", type=click.IntRange(min=1), help="The first N accepted jobs only.")
@click.option("--first", type=click.IntRange(min=1), help="Filter: the first N lines of the trace.")
@click.option("--last", type=click.IntRange(min=1), help="Filter: the last N lines of the trace.")
@click.option("--window", nargs=2, type=float, metavar="START END",
              help="Filter: jobs submitted in this window, seconds from the trace's start.")  # fmt: skip
@click.option("--scale-arrivals", type=float, help="Multiply the times between arrivals (below 1: more load).")
@click.option("--scale-runtimes", type=float, help="Multiply runtimes and estimates (above 1: more load).")
@click.option("--seed", type=click.IntRange(min=0), help="Seed; default: the configuration's, else 0.")
@click.option("--out", type=click.Path(path_type=Path), help="Directory for jobs.csv, metrics.json, report.html, ...")
@click.option("--journal", "journal_path", help="Record the run in this journal (for `headway replay`).")
@click.option("--strict", is_flag=True, help="Stop at the first broken line of the trace.")
@click.option("-v", "--verbose", is_flag=True, help="Name every line of the trace that was skipped or mended.")
def command(
    trace_path: Path | None,
    config_path: Path | None,
    from_cluster: bool,
    processors: int | None,
    policy: str | None,
    plugin_files: tuple[Path, ...],
    limit: int | None,
    first: int | None,
    last: int | None,
    window: tuple[float, float] | None,
    scale_arrivals: float | None,
    scale_runtimes: float | None,
    seed: int | None,
    out: Path | None,
    journal_path: str | None,
    strict: bool,
    verbose: bool,
) -> None:
    """Run a trace, or a copy of the live queue, in the emulated cluster."""
    from headway.config import load_config, parse_config
    from headway.emulation import emulate
    from headway.journal import Journal
    from headway.plugins import Catalogue
    from headway.workload import read_swf, trace_jobs

    if from_cluster == (trace_path is not None):
        raise click.UsageError("expected either --trace FILE or -c CONFIG --from-cluster")
    if from_cluster and config_path is None:
        raise click.UsageError("--from-cluster needs -c CONFIG, which names the cluster")
    config: Config = load_config(config_path) if config_path else parse_config("mode: dry-run")
    catalogue = Catalogue(plugin_files)
    configs = enabled(config, catalogue, policy, config_path is not None)
    seed = seed if seed is not None else config.seed
    if from_cluster:
        result = copy_forward(config, catalogue, configs, seed, label=policy or _label(configs), limit=limit)
        report(result, configs, catalogue, out, None, live=True)
        return
    assert trace_path is not None
    trace = read_swf(trace_path, strict=strict)
    trace = filtered(trace, first, last, window, scale_arrivals, scale_runtimes)
    _tell_issues(trace, verbose)
    cluster = machine(config, trace, processors)
    pool = cluster.pools[0]
    size = pool.processors or sum(n.processors for n in cluster.nodes)
    jobs, refused = trace_jobs(trace, size, limit=limit, pool=pool.name)
    if not jobs:
        raise UserError(f"{trace.path}: none of its {len(trace.records)} jobs can run on {size} processors")
    label = policy or _label(configs)
    journal = Journal.open(journal_path) if journal_path else None
    try:
        with job_progress(label, jobs) as advance:
            result = emulate(
                cluster,
                jobs,
                configs,
                catalogue,
                label=label,
                seed=seed,
                faults=config.emulation.faults,
                refused=refused,
                keep_decisions=out is not None,
                journal=journal,
                config_text=journal_text(config, policy, configs),
                on_cycle=advance,
                epoch=trace.epoch or 0.0,
                about={"workload": Path(trace.path).name, "processors": str(size)},
            )
    finally:
        if journal is not None:
            journal.close()
    report(result, configs, catalogue, out, trace)


def enabled(config: Config, catalogue: Catalogue, policy: str | None, configured: bool) -> list[PluginConfig]:
    """The plugins of a dry run: those of files, then ``policy`` (with a placement) or the configuration's."""
    from headway.plugins import PluginConfig, hooks_of

    if policy is None:
        return catalogue.enabled(config.plugin_configs())
    catalogue.get(policy, "--policy")
    others = [c for c in (config.plugin_configs() if configured else []) if c.name != policy]
    return [
        c
        for c in catalogue.enabled([PluginConfig(policy, {}, "--policy"), *others])
        if c.name == policy or "schedule" not in hooks_of(catalogue.get(c.name, c.where))
    ]


def journal_text(config: Config, policy: str | None, configs: list[PluginConfig]) -> str:
    """The configuration that a journal of this run keeps: what was enabled, if not what the file says."""
    import yaml

    if policy is None:
        return config.text
    return yaml.safe_dump({"mode": "dry-run", "plugins": [{c.name: dict(c.options)} for c in configs]})


def machine(config: Config, trace: Trace, processors: int | None) -> ClusterDescription:
    """The emulated cluster: ``processors``, else as configured, else as the trace's header says."""
    from headway.model import ClusterDescription

    described = config.emulation.description(processors)
    if described is not None:
        return described
    if trace.max_processors is None:
        raise UserError(
            f"{trace.path}: the header names no machine size (MaxProcs or MaxNodes); give --processors N"
        )
    return ClusterDescription.flat(trace.max_processors, name="emulated")


def filtered(
    trace: Trace,
    first: int | None = None,
    last: int | None = None,
    window: tuple[float, float] | None = None,
    scale_arrivals: float | None = None,
    scale_runtimes: float | None = None,
) -> Trace:
    """The trace through the filters that were asked for, in the order of the arguments."""
    from headway.workload import filters

    if first is not None:
        trace = filters.first(trace, first)
    if last is not None:
        trace = filters.last(trace, last)
    if window is not None:
        trace = filters.window(trace, *window)
    if scale_arrivals is not None:
        trace = filters.scale_arrivals(trace, scale_arrivals)
    if scale_runtimes is not None:
        trace = filters.scale_runtimes(trace, scale_runtimes)
    return trace


def _tell_issues(trace: Trace, verbose: bool) -> None:
    screen = messages()
    for line in trace.describe_issues(verbose=verbose):
        screen.print(line, style="yellow", markup=False)


def _label(configs: list[PluginConfig]) -> str:
    return configs[0].name if configs else "none"


def copy_forward(
    config: Config,
    catalogue: Catalogue,
    configs: list[PluginConfig],
    seed: int,
    *,
    label: str,
    limit: int | None = None,
) -> RunResult:
    """Run a copy of the live cluster into the future."""
    from headway.config import live_adapter
    from headway.emulation import Copy, emulate

    with live_adapter(config, read_only=True) as adapter:
        copy = Copy(adapter)
    jobs = copy.jobs if limit is None else copy.jobs[: limit + len(copy.running)]
    with job_progress(label, jobs) as advance:
        return emulate(
            copy.cluster,
            jobs,
            configs,
            catalogue,
            label=label,
            seed=seed,
            keep_decisions=True,
            on_cycle=advance,
            clock=wall_clock,
            start=copy.now,
            running=copy.running,
            about={"workload": f"copy of cluster {copy.cluster.name} at {wall_clock(copy.now)}"},
        )


def report(
    result: RunResult,
    configs: list[PluginConfig],
    catalogue: Catalogue,
    out: Path | None,
    trace: Trace | None,
    *,
    live: bool = False,
) -> None:
    """Print the summary; write the files if a directory was given."""
    from headway.metrics import summarise
    from headway.report import render_summary, write_outputs

    metrics, sections = contributions(configs, catalogue)
    screen = console()
    screen.print(render_summary(summarise(result, metrics)))
    if live:
        _print_forecast(result)
    if out is not None:
        written = write_outputs(result, out, trace=trace, extra=metrics, sections=sections([result]))
        messages().print(f"written: {', '.join(p.name for p in written)} in {out}", markup=False)


def _print_forecast(result: RunResult) -> None:
    from rich.table import Table

    table = Table("job", "user", "processors", "expected start", "nodes", title="forecast, if nothing else is submitted")
    waiting = [job for job in result.jobs if job.start_time is None or job.starts and job.row == -1]
    for job in sorted(waiting, key=lambda j: j.start_time if j.start_time is not None else float("inf"))[:50]:
        start = wall_clock(job.start_time) if job.start_time is not None else "not foreseeable"
        nodes = ",".join(name for name, _ in job.placement[:4]) + (", ..." if len(job.placement) > 4 else "")
        table.add_row(job.job.id, job.job.user, str(job.job.request.processors), start, nodes)
    console().print(table)
