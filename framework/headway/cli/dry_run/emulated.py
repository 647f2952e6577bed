"""A dry run of a trace or of a model's jobs: one run, or the middle one of several draws."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headway.cli.common import measured_latencies, messages, say
from headway.cli.dry_run.given import work_of
from headway.cli.dry_run.told import in_short, report
from headway.cli.dry_run.work import Work, first_pool
from headway.cli.rules import ON_THE_SPOT, accepted, refuse_breaches

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.cli.dry_run.asked import Asked
    from headway.cli.dry_run.site import Site
    from headway.config import Config
    from headway.experiment.single import One
    from headway.journal import Journal
    from headway.journal.latencies import Latencies
    from headway.results import RunResult
    from headway.workload import Trace


@dataclass(frozen=True)
class _Done:
    """A finished run, without the jobs that it ran: they may be very many."""

    result: RunResult
    #: The trace's path, or the model's name.
    name: str
    #: The trace, if there was one, until the report takes it out.
    replayed: list[Trace]
    #: What the rule book knows of the run.
    judged: One
    about: dict[str, str]
    #: Waits and slowdowns of the open replay, if users' reactions were asked for.
    opened: str | None


def run_workload(asked: Asked, site: Site) -> None:
    """Run the jobs that were asked for, and say how it went."""
    from headway.emulation import validated_faults
    from headway.plugins.failures import refuse_failed

    validated_faults(site.config.emulation.faults, f"{site.config.source}: emulation.faults")
    done = _run(asked, site, work_of(asked, site))
    # The emulated cluster has the jobs with their secrets, too, and a record of each; its parts refer to each
    # other.
    gc.collect()
    chained = in_short(done.result) if done.opened is not None else None
    trusted = report(done.result, site, asked.outputs.out, done.replayed, one=done.judged)
    if done.opened is not None:
        say(f"feedback: {done.about['feedback']}; with it {chained}; open replay {done.opened}")
    if asked.chance.draws > 1:
        say(f"draws: {done.about['draws']}")
    if asked.outputs.journal_path:
        say(f"journal: {asked.outputs.journal_path} (`headway replay {asked.outputs.journal_path}`)")
    if asked.method.strict_method and trusted is not None:
        refuse_breaches(trusted.judged, done.name, option="--strict-method", remedy=ON_THE_SPOT)
    refuse_failed(done.result.failures)


def _run(asked: Asked, site: Site, work: Work) -> _Done:
    from headway.cli.screen import job_progress
    from headway.experiment.draws import middle

    judged = _judged_by(work, asked, site)
    if asked.method.strict_method:
        before = judged.before(site.catalogue)
        refuse_breaches(before.judged, work.name, option="--strict-method", remedy=ON_THE_SPOT)
    about = {"workload": Path(work.name).name if work.trace is not None else work.name}
    if site.estimates is not None:
        about["estimates"] = " ".join([str(asked.work.estimates), *asked.work.estimate_settings])
    emulated = _emulation(work, site)
    seed = site.seed
    if asked.chance.draws > 1:
        found = middle(emulated, seed, asked.chance.draws)
        seed = found.seed
        apart = f"half of the jobs start within {found.apart:.1f} s of their middle start"
        about["draws"] = f"{asked.chance.draws}; {apart}"
    opened = None
    if asked.work.in_chains:
        about["feedback"] = f"{len(work.chains)} of {len(work.jobs)} jobs follow another job" + (
            ", as inferred from think times" if work.inferred else ", as the trace says"
        )
        with job_progress(f"{site.label}, open", work.jobs) as advance:
            opened = in_short(emulated(seed=seed, on_cycle=advance))
    journal = _opened(asked.outputs.journal_path) if asked.outputs.journal_path else None
    try:
        with job_progress(site.label, work.jobs) as advance:
            result = emulated(
                seed=seed,
                chains=work.chains,
                refused=work.refused,
                keep_decisions=asked.outputs.out is not None,
                journal=journal,
                config_text=site.text,
                on_cycle=advance,
                about=about,
            )
    finally:
        if journal is not None:
            journal.close()
    result.class_bounds = site.config.metrics.class_bounds()
    replayed = [work.trace] if work.trace is not None else []
    return _Done(result, work.name, replayed, judged, about, opened)


def _emulation(work: Work, site: Site) -> Callable[..., RunResult]:
    """Runs these jobs under the site's plugins; takes a seed, and what one run needs beside it."""
    from headway.emulation import emulate

    config = site.config
    return partial(
        emulate,
        work.cluster,
        work.jobs,
        site.plugins,
        site.catalogue,
        label=site.label,
        commands=work.commands,
        faults=config.emulation.faults,
        cycle=config.cycle,
        wait_for_down_nodes=config.wait_for_down_nodes,
        tiers=config.tiers,
        epoch=work.epoch,
        latencies=_configured_latencies(config),
        fair_links=config.transfers.links == "fair",
    )


def _opened(path: str) -> Journal:
    from headway.journal import Journal

    return Journal.open(path)


def _configured_latencies(config: Config) -> Latencies | None:
    """What emulation.latency asks for."""
    if config.emulation.latency == "none":
        return None
    found = measured_latencies(config)
    if found is None:
        said = (
            f"emulation.latency: the journal {config.journal} has no measurements yet; the run has no "
            "latencies"
        )
        say(said, messages(), style="yellow")
    return found


def _judged_by(work: Work, asked: Asked, site: Site) -> One:
    """What the rule book is shown of a run: its policy, and the facts of its workload."""
    from headway.experiment.facts import facts_of, facts_of_trace
    from headway.experiment.single import One
    from headway.workload import Workload

    _, size = first_pool(work.cluster)
    if work.trace is not None:
        filters = asked.filters
        facts = facts_of_trace(
            work.trace,
            size,
            limit=asked.work.limit,
            modelled_estimates=site.estimates is not None,
            scaled={
                "times between submissions": filters.scale_arrivals or 1.0,
                "runtimes": filters.scale_runtimes or 1.0,
                "sizes": filters.scale_sizes or 1.0,
            },
        )
    else:
        jobs = Workload(list(work.jobs), list(work.commands))
        facts = facts_of("", 1.0, site.seed, jobs, size, refused=list(work.refused))
    return One(site.label, tuple(site.plugins), facts, accepted(asked.method.accept))
