"""``headway dry-run``: what would have happened, or what will."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.asking import Duration
from headway.cli.common import (
    config_option,
    console,
    contributions,
    examples,
    job_progress,
    measured_latencies,
    messages,
    plugin_option,
    prepare_directory,
    reaching_the_cluster,
    say,
    set_up_log,
    tell_issues,
    wall_clock,
)
from headway.cli.earlier_runs import first_submissions
from headway.cli.estimate_options import asked_model, estimates_option, estimates_set_option
from headway.cli.numbers import FiniteRange
from headway.cli.rules import ON_THE_SPOT, accepted, refuse_breaches, show_doubts, single_options
from headway.errors import UserError
from headway.inputs.extras import need_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway.config import Config
    from headway.experiment.single import One, Trusted
    from headway.journal import Journal
    from headway.journal.latencies import Latencies
    from headway.model import ClusterDescription
    from headway.plugins import Catalogue, PluginConfig
    from headway.report import Section
    from headway.results import Refused, RunResult
    from headway.workload import ChosenModel, Trace, TraceCommand, TraceJob
    from headway.workload.jobs import Follows


#: Jobs of a forecast that are listed.
_FORECAST = 50

COUNT = click.IntRange(min=1)
FACTOR = FiniteRange(min=0, min_open=True)


@click.command(
    "dry-run",
    epilog=examples(
        "headway dry-run --trace log.swf.gz                 EASY, the trace's machine",
        "headway dry-run --trace log.swf --policy fcfs --out out     with a report",
        "headway dry-run --trace log.swf --first 5000 --scale-arrivals 0.8",
        "headway dry-run --workload ccr --set load=1.1     a model's jobs",
        "headway dry-run --trace log.swf --estimates f-model --estimates-set f=3",
        "headway dry-run -c site.yaml --trace log.swf       the site's configuration",
        "headway dry-run -c site.yaml --from-cluster        the live queue's future",
    ),
)
@click.option("--trace", "trace_path", type=click.Path(path_type=Path),
              help="Trace, in any format of docs/workloads.md: .swf, .cwf, .json, sacct.")  # fmt: skip
@click.option("--workload", metavar="MODEL",
              help="Draw the jobs from a workload model; `headway generate` lists them.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
              help="An option of the model. Repeatable.")  # fmt: skip
@estimates_option
@estimates_set_option
@config_option
@click.option("--from-cluster", is_flag=True,
              help="Start from a copy of the configured cluster's queue and nodes.")  # fmt: skip
@click.option("--processors", type=COUNT, metavar="N",
              help="Size of a flat machine. Default: as configured, else the trace header's.")  # fmt: skip
@click.option("--policy", metavar="NAME",
              help="Policy or preset, instead of the configured policy; other plugins stay. "
              "Default: easy.")  # fmt: skip
@click.option("--with", "further", multiple=True, metavar="NAME",
              help="Enable this plugin, too, behind the others (such as fairness). Repeatable.")  # fmt: skip
@plugin_option
@click.option("--energy", "energy", metavar="PROFILE",
              help="Energy profile, installed (chandio2014, present-day) or a file: adds power and energy "
              "to the results.")  # fmt: skip
@click.option("--licences", "licences_path", type=click.Path(path_type=Path), metavar="FILE",
              help="Which licences jobs need, lines job_id,licence,amount; how many there are is "
              "emulation.licences.")  # fmt: skip
@click.option("--switches", "switches_path", type=click.Path(path_type=Path), metavar="FILE",
              help="On how many switches jobs may lie, lines job_id,switches,wait (for the placement "
              "tree).")  # fmt: skip
@click.option("--cpu", "cpu_path", type=click.Path(path_type=Path), metavar="FILE",
              help="How much of a processor each process of a job uses, lines job_id,cpu (for policies that "
              "share processors). Default: drawn.")  # fmt: skip
@click.option("--limit", type=COUNT, metavar="N", help="Run the first N accepted jobs only.")
@click.option("--first", type=COUNT, metavar="N", help="Filter: the first N jobs of the trace.")
@click.option("--last", type=COUNT, metavar="N", help="Filter: the last N jobs of the trace.")
@click.option("--window", nargs=2, type=float, metavar="START END",
              help="Filter: jobs submitted in this window, seconds after the first submission.")  # fmt: skip
@click.option("--scale-arrivals", type=FACTOR, metavar="FACTOR",
              help="Filter: multiply the times between arrivals (below 1: more load).")  # fmt: skip
@click.option("--scale-runtimes", type=FACTOR, metavar="FACTOR",
              help="Filter: multiply runtimes and estimates (above 1: more load).")  # fmt: skip
@click.option("--scale-sizes", type=FACTOR, metavar="FACTOR",
              help="Filter: multiply the jobs' processors, up to the machine's.")  # fmt: skip
@click.option("--feedback", type=click.Choice(["none", "chains"]), default="none", show_default=True,
              help="chains: users submit their next job as long after their last one ended as in the trace "
              "(fields 17 and 18, else inferred). Run beside the open replay.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), metavar="N",
              help="Seed of what is drawn at random. Default: as configured, else 0.")  # fmt: skip
@click.option("--draws", type=COUNT, default=1, metavar="N",
              help="Run so often, each time with other random draws (latencies, faults), and report the run "
              "that is nearest to the middle of all. Default: 1.")  # fmt: skip
@click.option("--cycle", type=Duration((86400.0, "a day")), metavar="TIME",
              help="Batch mode: start jobs only at multiples of this time (10s, 1m). "
              "Default: as configured, else at every event.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="DIRECTORY",
              help="Write jobs.csv, decisions.csv, metrics.json, schedule.swf, report.html.")  # fmt: skip
@click.option("--journal", "journal_path", metavar="JOURNAL",
              help="Record the run in this journal, a file or a URL (for `headway replay`).")  # fmt: skip
@click.option("--strict", is_flag=True, help="Stop at the first broken line of the trace.")
@single_options
@click.option("-v", "--verbose", is_flag=True,
              help="Name each line that was skipped or mended, and each job that was refused.")  # fmt: skip
def command(
    trace_path: Path | None,
    workload: str | None,
    settings: tuple[str, ...],
    estimates: str | None,
    estimate_settings: tuple[str, ...],
    config_path: Path | None,
    from_cluster: bool,
    processors: int | None,
    policy: str | None,
    further: tuple[str, ...],
    plugin_files: tuple[Path, ...],
    energy: str | None,
    cpu_path: Path | None,
    licences_path: Path | None,
    switches_path: Path | None,
    limit: int | None,
    first: int | None,
    last: int | None,
    window: tuple[float, float] | None,
    scale_arrivals: float | None,
    scale_runtimes: float | None,
    scale_sizes: float | None,
    feedback: str,
    seed: int | None,
    draws: int,
    cycle: float | None,
    out: Path | None,
    journal_path: str | None,
    strict: bool,
    accept: tuple[str, ...],
    strict_method: bool,
    verbose: bool,
) -> None:
    """Run a trace, a model's workload, or a copy of the live queue, in the emulated cluster.

    Prints a summary; --out writes each job and decision, the metrics and a report, too. Filters are
    applied in the order in which they are listed below. The same input and seed give the same schedule.

    At the end stands how far the run may be trusted: which rules of the evaluation of schedulers
    (docs/trust.md) its workload and the run itself break.
    """
    import msgspec

    from headway.config import load_config, parse_config
    from headway.emulation import emulate, validated_faults
    from headway.experiment.draws import middle
    from headway.plugins import Catalogue
    from headway.plugins.failures import refuse_failed
    from headway.workload import estimated_trace, filters, read_trace
    from headway.workload.chains import chains_of, recorded_chains, with_chains
    from headway.workload.cpu_use import jobs_with_cpu_use, read_cpu_use
    from headway.workload.licence_use import jobs_with_licences, read_licence_use
    from headway.workload.switch_use import jobs_with_switches, read_switch_use
    from headway.workload.whole_nodes import jobs_on_whole_nodes

    if sum((from_cluster, trace_path is not None, workload is not None)) != 1:
        raise click.UsageError("expected one of --trace FILE, --workload MODEL or -c CONFIG --from-cluster")
    if settings and workload is None:
        raise click.UsageError("--set goes with --workload")
    if from_cluster and config_path is None:
        raise click.UsageError("--from-cluster needs -c CONFIG, which names the cluster")
    if trace_path is None:
        _refuse_trace_options(
            "--workload" if workload is not None else "--from-cluster",
            first=first, last=last, window=window, scale_arrivals=scale_arrivals,
            scale_runtimes=scale_runtimes, scale_sizes=scale_sizes, strict=strict or None,
            feedback=None if feedback == "none" else feedback,
        )  # fmt: skip
    if from_cluster:
        _refuse_trace_options(
            "--from-cluster", processors=processors, journal=journal_path, cpu=cpu_path,
            licences=licences_path, switches=switches_path,
            draws=draws if draws > 1 else None, estimates=estimates,
            strict_method=strict_method or None, accept=accept or None,
        )  # fmt: skip
    if feedback != "none" and draws > 1:
        raise click.UsageError("--feedback goes with one run, not with --draws")
    if out is not None:
        need_report("--out")
        prepare_directory(out)
    config: Config = load_config(config_path) if config_path else parse_config("mode: dry-run")
    set_up_log(config.log)
    catalogue = Catalogue(plugin_files)
    configs = _with_further(enabled(config, catalogue, policy, config_path is not None), further, catalogue)
    _tell_what_is_emulated_alone(config, configs, catalogue)
    seed = seed if seed is not None else config.seed
    chosen = asked_model(catalogue, estimates, estimate_settings)
    if cycle is not None:
        config.cycle = cycle
    if from_cluster:
        label = policy or _label(config, configs, catalogue)
        assert config_path is not None
        with reaching_the_cluster(config_path):
            result, copied_at = copy_forward(
                config, catalogue, configs, seed, label=label, limit=limit, energy=energy
            )
        result.class_bounds = config.metrics.class_bounds()
        report(result, configs, catalogue, out, [], live_since=copied_at)
        refuse_failed(result.failures)
        return
    validated_faults(config.emulation.faults, f"{config.source}: emulation.faults")
    if workload is not None:
        work = _drawn(config, catalogue, workload, settings, seed, processors, limit, chosen)
    else:
        assert trace_path is not None
        trace = read_trace(trace_path, strict=strict)
        if feedback == "chains":
            inferred = not recorded_chains(trace)
            trace = with_chains(trace)
        trace = filtered(trace, first, last, window, scale_arrivals, scale_runtimes)
        tell_issues(trace, verbose)
        if chosen is not None:
            trace = estimated_trace(trace, chosen, seed)
        cluster = machine(config, trace, processors)
        if scale_sizes is not None:
            trace = filters.scale_sizes(trace, scale_sizes, _first_pool(cluster)[1])
        work = _traced(trace, cluster, limit, config)
        if feedback == "chains":
            work = replace(work, chains=chains_of(trace, work.jobs))
        del trace
    if cpu_path is not None:
        work = replace(work, jobs=jobs_with_cpu_use(work.jobs, read_cpu_use(cpu_path)))
    if licences_path is not None:
        work = replace(work, jobs=jobs_with_licences(work.jobs, read_licence_use(licences_path)))
    if switches_path is not None:
        work = replace(work, jobs=jobs_with_switches(work.jobs, read_switch_use(switches_path)))
    if config.emulation.whole_nodes and work.cluster.nodes:
        work = replace(work, jobs=jobs_on_whole_nodes(work.jobs))
    cluster = config.with_energy(work.cluster, energy)
    if any(one.adapter != "emulated" for _, one in config.clusters_by_place()):
        cluster = msgspec.structs.replace(cluster, stands_in=True)
    if verbose:
        for one in work.refused:
            where = f"{work.name}:{one.line}" if one.line else work.name
            say(f"{where}: job {one.job_id} refused: {one.reason}", messages(), "yellow")
    label = policy or _label(config, configs, catalogue)
    under_rules = _judged_by(
        work, label, configs, seed, accept,
        modelled_estimates=chosen is not None,
        scaled={
            "times between submissions": scale_arrivals or 1.0,
            "runtimes": scale_runtimes or 1.0,
            "sizes": scale_sizes or 1.0,
        },
        limit=limit,
    )  # fmt: skip
    if strict_method:
        before = under_rules.before(catalogue)
        refuse_breaches(before.judged, work.name, option="--strict-method", remedy=ON_THE_SPOT)
    about = {"workload": Path(work.name).name if work.trace is not None else work.name}
    if chosen is not None:
        about["estimates"] = " ".join([str(estimates), *estimate_settings])
    emulated = partial(
        emulate,
        cluster,
        work.jobs,
        configs,
        catalogue,
        label=label,
        commands=work.commands,
        faults=config.emulation.faults,
        cycle=config.cycle,
        wait_for_down_nodes=config.wait_for_down_nodes,
        tiers=config.tiers,
        epoch=(work.trace.epoch if work.trace is not None else None) or 0.0,
        latencies=_configured_latencies(config),
    )
    if draws > 1:
        found = middle(emulated, seed, draws)
        seed = found.seed
        about["draws"] = f"{draws}; half of the jobs start within {found.apart:.1f} s of their middle start"
    reacts: list[str] = []
    if feedback == "chains":
        about["feedback"] = f"{len(work.chains)} of {len(work.jobs)} jobs follow another one" + (
            ", as inferred from think times" if inferred else ", as the trace says"
        )
        with job_progress(f"{label}, open", work.jobs) as advance:
            reacts.append(_in_short(emulated(seed=seed, on_cycle=advance)))
    journal = _opened(journal_path) if journal_path else None
    try:
        with job_progress(label, work.jobs) as advance:
            result = emulated(
                seed=seed,
                chains=work.chains,
                refused=work.refused,
                keep_decisions=out is not None,
                journal=journal,
                config_text=journal_text(config, policy, configs, cycle, changed=bool(further)),
                on_cycle=advance,
                about=about,
            )
    finally:
        if journal is not None:
            journal.close()
    result.class_bounds = config.metrics.class_bounds()
    replayed = [work.trace] if work.trace is not None else []
    # The jobs with their secrets are needed no more, and may be very many. The emulated cluster has them,
    # too, and a record of each; its parts refer to each other.
    name = work.name
    del work, emulated, advance
    gc.collect()
    if reacts:
        reacts.append(_in_short(result))
    trusted = report(result, configs, catalogue, out, replayed, one=under_rules)
    if reacts:
        opened, chained = reacts
        say(f"feedback: {about['feedback']}; with it {chained}; open replay {opened}")
    if draws > 1:
        say(f"draws: {about['draws']}")
    if journal_path:
        say(f"journal: {journal_path} (`headway replay {journal_path}`)")
    if strict_method and trusted is not None:
        refuse_breaches(trusted.judged, name, option="--strict-method", remedy=ON_THE_SPOT)
    refuse_failed(result.failures)


def _in_short(result: RunResult) -> str:
    """Mean wait and mean bounded slowdown."""
    from headway.metrics import job_columns
    from headway.metrics.summary import statistics
    from headway.report.quantities import duration, number

    columns = job_columns(result)
    wait, slowdown = statistics(columns.wait)["mean"], statistics(columns.bounded_slowdown)["mean"]
    return f"mean wait {duration(wait)}, bounded slowdown {number(slowdown)}"


def _opened(path: str) -> Journal:
    from headway.journal import Journal

    return Journal.open(path)


def _configured_latencies(config: Config) -> Latencies | None:
    """What emulation.latency asks for."""
    if config.emulation.latency == "none":
        return None
    found = measured_latencies(config)
    if found is None:
        said = f"emulation.latency: nothing was measured yet in the journal {config.journal}; without any"
        say(said, messages(), style="yellow")
    return found


def _refuse_trace_options(with_: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"{option} goes with --trace, not with {with_}")


@dataclass(frozen=True)
class _Work:
    """What is run: a machine, and what its users want of it."""

    #: The trace's path, or the model's name.
    name: str
    cluster: ClusterDescription
    jobs: Sequence[TraceJob]
    commands: Sequence[TraceCommand]
    refused: Sequence[Refused]
    trace: Trace | None = None
    #: Whom jobs follow, by id.
    chains: Mapping[str, Follows] = field(default_factory=dict)


def _traced(trace: Trace, cluster: ClusterDescription, limit: int | None, config: Config) -> _Work:
    """A trace's jobs for this machine; :class:`UserError` if none can run on it."""
    from headway.workload.trace_pools import emulated_jobs

    _, size = _first_pool(cluster)
    sizes, pools = cluster.pool_sizes(), config.emulation.trace_pools
    chosen = None
    if pools is not None:
        size = max(sizes.values())
        chosen = pools.chosen(f"{config.source}: emulation.trace_pools")
    jobs, commands, refused = emulated_jobs(trace, size, sizes, chosen, limit=limit)
    if not jobs:
        raise UserError(f"{trace.path}: none of its {len(trace.records)} jobs can run on {size} processors")
    return _Work(trace.path, cluster, jobs, commands, refused, trace)


def _drawn(
    config: Config,
    catalogue: Catalogue,
    model: str,
    settings: Sequence[str],
    seed: int,
    processors: int | None,
    limit: int | None,
    chosen: ChosenModel | None,
) -> _Work:
    """A model's jobs on the machine that is configured or asked for, else on the model's own."""
    from headway.cli.generate import drawn
    from headway.model import ClusterDescription
    from headway.results import Refused
    from headway.workload import estimated_workload

    cluster = config.emulation.description(processors)
    defaults = {}
    if cluster is not None:
        pool, size = _first_pool(cluster)
        defaults = {"processors": size, "pool": pool}
    workload = drawn(catalogue, model, settings, seed, defaults)
    if chosen is not None:
        workload = estimated_workload(workload, chosen, seed)
    if cluster is None:
        if workload.processors is None:
            raise UserError(f"--workload {model}: the model names no machine size; give --processors N")
        cluster = ClusterDescription.flat(workload.processors, name="emulated")
    _, size = _first_pool(cluster)
    jobs = workload.jobs if limit is None else workload.jobs[:limit]
    too_large = f"larger than the pool ({size} processors)"
    refused = [Refused(job.job.id, too_large) for job in jobs if job.job.request.processors > size]
    fitting = [job for job in jobs if job.job.request.processors <= size]
    if not fitting:
        raise UserError(f"--workload {model}: none of its {len(jobs)} jobs can run on {size} processors")
    ids = {job.job.id for job in fitting}
    commands = [command for command in workload.commands if command.job_id in ids]
    name = " ".join([model, *settings, f"seed={seed}"])
    return _Work(name, cluster, fitting, commands, refused)


def _judged_by(
    work: _Work,
    label: str,
    configs: Sequence[PluginConfig],
    seed: int,
    accept: Sequence[str],
    *,
    modelled_estimates: bool,
    scaled: Mapping[str, float],
    limit: int | None,
) -> One:
    """What the rule book is shown of a run: its policy, and the facts of its workload."""
    from headway.experiment.facts import facts_of, facts_of_trace
    from headway.experiment.single import One
    from headway.workload import Workload

    _, size = _first_pool(work.cluster)
    if work.trace is not None:
        facts = facts_of_trace(
            work.trace, size, limit=limit, modelled_estimates=modelled_estimates, scaled=scaled
        )
    else:
        jobs = Workload(list(work.jobs), list(work.commands))
        facts = facts_of("", 1.0, seed, jobs, size, refused=list(work.refused))
    return One(label, tuple(configs), facts, accepted(accept))


def _first_pool(cluster: ClusterDescription) -> tuple[str, int]:
    """Where the jobs go: the pool's name, and its processors."""
    pool = cluster.pools[0]
    return pool.name, pool.processors or sum(n.processors for n in cluster.nodes)


def enabled(config: Config, catalogue: Catalogue, policy: str | None, configured: bool) -> list[PluginConfig]:
    """The plugins of a dry run: those of files, then ``policy`` (with a placement) or the configuration's."""
    from headway.plugins import PluginConfig
    from headway.plugins.hook_names import hooks_of

    if policy is None:
        return catalogue.enabled(config.plugin_configs())
    there = catalogue.expanded(config.plugin_configs()) if configured else []
    own = {c.name: c.options for c in there}
    beside = next((c.beside for c in there), None)
    # What the configuration says of the same plugins stands, but for what the preset says itself.
    chosen = [
        PluginConfig(c.name, {**own.get(c.name, {}), **c.options}, c.where, beside)
        for c in catalogue.expanded([PluginConfig(policy, {}, "--policy")])
    ]
    hooks = {c.name: list(hooks_of(catalogue.get(c.name, c.where))) for c in chosen}
    if not any("schedule" in found for found in hooks.values()):
        policies = [n for n, kind in catalogue.loadable().items() if "schedule" in hooks_of(kind)]
        raise UserError(
            f"--policy: expected a policy ({', '.join([*policies, *catalogue.presets()])}), found the plugin "
            f"{policy!r}, which implements {', '.join(hooks[policy])}"
        )
    others = [c for c in there if c.name not in hooks]
    return [
        c
        for c in catalogue.enabled([*chosen, *others])
        if c.name in hooks or "schedule" not in hooks_of(catalogue.get(c.name, c.where))
    ]


def _with_further(
    configs: list[PluginConfig], further: Sequence[str], catalogue: Catalogue
) -> list[PluginConfig]:
    """Those, and the plugins of ``--with`` that are not among them."""
    from headway.plugins import PluginConfig

    there = {config.name for config in configs}
    wanted = [PluginConfig(name, {}, "--with") for name in dict.fromkeys(further)]
    return [*configs, *(one for one in catalogue.expanded(wanted) if one.name not in there)]


def journal_text(
    config: Config,
    policy: str | None,
    configs: list[PluginConfig],
    cycle: float | None,
    changed: bool = False,
) -> str:
    """The configuration that a journal of this run keeps: what was enabled, if not what the file says."""
    import yaml

    if policy is None and cycle is None and not changed:
        return config.text
    said = {
        "mode": "dry-run",
        "plugins": [{c.name: dict(c.options)} for c in configs],
        "cycle": config.cycle,
        "wait_for_down_nodes": config.wait_for_down_nodes or None,
        "pools": {name: {"tier": tier} for name, tier in config.tiers.items()} or None,
    }
    return yaml.safe_dump({key: value for key, value in said.items() if value is not None})


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
    return config.emulation.with_licences(ClusterDescription.flat(trace.max_processors, name="emulated"))


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


def _tell_what_is_emulated_alone(
    config: Config, configs: Sequence[PluginConfig], catalogue: Catalogue
) -> None:
    """Say which plugins do something here that the configured cluster cannot do."""
    from headway.plugins import Plugins

    where = config.keeps_suspended()
    if where is None:
        return
    for name in Plugins.load(configs, catalogue, None).requiring("lending"):
        say(
            f"{where}: plugin {name!r} suspends jobs to make room, and this cluster keeps their processors "
            "for them: only in emulation others get these, and `headway run` refuses it; requeue or cancel "
            "them instead",
            messages(), style="yellow",
        )  # fmt: skip


def _label(config: Config, configs: list[PluginConfig], catalogue: Catalogue) -> str:
    """What the configuration calls the policy: its name, or that of the preset that it is part of."""
    from headway.plugins.hook_names import hooks_of

    policies = (c.name for c in configs if "schedule" in hooks_of(catalogue.get(c.name, c.where)))
    policy = next(policies, configs[0].name if configs else "none")
    for entry in config.plugin_configs():
        if any(c.name == policy for c in catalogue.expanded([entry])):
            return entry.name
    return policy


def copy_forward(
    config: Config,
    catalogue: Catalogue,
    configs: list[PluginConfig],
    seed: int,
    *,
    label: str,
    limit: int | None = None,
    energy: str | None = None,
) -> tuple[RunResult, float]:
    """Run a copy of the live cluster into the future; returns when the copy was made (epoch second), too."""
    from headway.config import live_adapter
    from headway.emulation import emulate
    from headway.emulation.live_copy import Copy
    from headway.plugins import Plugins

    with live_adapter(config, read_only=True) as adapter:
        adapter.submitted_before(partial(first_submissions, config))
        adapter.tell_words(Plugins.load(configs, catalogue, None).job_words)
        copy = Copy(adapter)
    jobs = copy.jobs if limit is None else copy.jobs[: limit + len(copy.running)]
    with job_progress(label, jobs) as advance:
        result = emulate(
            config.with_energy(copy.cluster, energy),
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
            power=copy.power,
            cycle=config.cycle,
            wait_for_down_nodes=config.wait_for_down_nodes,
            tiers=config.tiers,
            latencies=measured_latencies(config),
            about={"workload": f"copy of cluster {copy.cluster.name} at {wall_clock(copy.now)}"},
        )
    return result, copy.now


def report(
    result: RunResult,
    configs: list[PluginConfig],
    catalogue: Catalogue,
    out: Path | None,
    replayed: list[Trace],
    *,
    live_since: float | None = None,
    one: One | None = None,
) -> Trusted | None:
    """Print the summary; write the files if a directory was given.

    ``replayed`` holds the trace that was replayed, if there was one. It is taken out for its schedule, which
    comes first: its records are many, and nothing else needs them. ``live_since``: when the cluster was
    copied (epoch second); then there is a forecast, too. ``one``: what the rule book knows of the run; what
    it says is printed, written and returned.
    """
    from headway.emulation.collector import quiet_collector
    from headway.metrics import Figures
    from headway.report import FORMATS, render_summary, write_outputs

    metrics, columns, sections = contributions(configs, catalogue)
    figures = Figures(result, metrics, columns)
    trusted = one.after(result, catalogue, known=figures) if one is not None else None
    written: list[Path] = []
    try:
        # Before anything is printed: a reader who goes away early (| head) must not cost the files.
        if out is not None:
            with quiet_collector():
                schedule = write_outputs(
                    result, out, trace=replayed.pop() if replayed else None, formats=("swf",)
                )
                others = [name for name in FORMATS if name != "swf"]
                written = write_outputs(
                    result,
                    out,
                    formats=others,
                    sections=[*sections([result]), *([_doubts(trusted)] if trusted is not None else [])],
                    figures=figures,
                    further={"method": trusted.data()} if trusted is not None else {},
                )
                written[-1:-1] = schedule
    finally:
        console().print(render_summary(figures.summary))
        if trusted is not None:
            show_doubts(console(), trusted.judged, trusted.measured)
        if live_since is not None:
            _print_forecast(result, live_since)
        say(f"\nseed: {result.seed}")
    if out is not None:
        say(f"results: {', '.join(path.name for path in written)} in {out}")
    return trusted


def _doubts(trusted: Trusted) -> Section:
    """What the rule book says of the run, for the page."""
    from markupsafe import escape

    from headway.cli.rules import rules_table
    from headway.report import Section

    table = rules_table(trusted.judged)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return Section("How far to trust this", f"<p>{escape(table.note)}</p><table>{rows}</table>")


def _print_forecast(result: RunResult, since: float) -> None:
    """When what waits at the time ``since`` is expected to start."""
    from rich import box
    from rich.table import Table

    waiting = [job for job in result.jobs if job.start_time is None or job.start_time >= since]
    if not waiting:
        say("\nNo job waits.")
        return
    starting = sorted(
        (start, at, job) for at, job in enumerate(waiting) if (start := job.start_time) is not None
    )
    table = Table(
        box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, padding=(0, 1, 0, 0), pad_edge=False
    )
    table.add_column("job", no_wrap=True)
    table.add_column("user")
    table.add_column("procs", justify="right", no_wrap=True)
    table.add_column("expected start", no_wrap=True)
    table.add_column("nodes", overflow="ellipsis", no_wrap=True)
    for start, _, job in starting[:_FORECAST]:
        nodes = ",".join(name for name, _ in job.placement[:4])
        if len(job.placement) > 4:
            nodes += f" + {len(job.placement) - 4}"
        table.add_row(job.job.id, job.job.user, str(job.job.request.processors), wall_clock(start), nodes)
    if starting:
        say("\nForecast, if every job runs for its estimate and nothing else is submitted:\n")
        console().print(table)
    if len(starting) > _FORECAST:
        say(f"... and {len(starting) - _FORECAST} more (all of them with --out, in jobs.csv)")
    if unknown := len(waiting) - len(starting):
        these = "1 job waits" if unknown == 1 else f"{unknown} jobs wait"
        say(
            f"\n{these} for something that cannot be foreseen, such as a release from hold: the summary says "
            "what, and `headway explain JOB` of each job."
        )
