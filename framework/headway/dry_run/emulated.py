"""A dry run of a trace or of a model's jobs: one run, or the middle one of several draws."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headway.dry_run.given import work_of
from headway.dry_run.work import Work, first_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from headway.config import Config
    from headway.dry_run.asked import Asked
    from headway.dry_run.site import Site
    from headway.experiment.single import One
    from headway.journal import Journal
    from headway.journal.latencies import Latencies
    from headway.results import RunResult
    from headway.workload import Trace, TraceJob

    #: Shows how far a run is: given its label and its jobs, it yields what is called after each cycle with
    #: its time; None: nothing is.
    Progress = Callable[[str, Sequence[TraceJob]], AbstractContextManager[Callable[[float], None] | None]]


@dataclass(frozen=True)
class Done:
    """A finished run, without the jobs that it ran: they may be very many."""

    result: RunResult
    #: The trace's path, or the model's name.
    name: str
    #: The trace, if there was one, until the files are written.
    replayed: list[Trace]
    #: What the rule book knows of the run.
    judged: One
    about: dict[str, str]
    #: Waits and slowdowns of the open replay, if users' reactions were asked for.
    opened: str | None


@contextmanager
def unseen(label: str, jobs: Sequence[TraceJob]) -> Iterator[None]:
    """Shows nothing."""
    yield


def emulated(asked: Asked, site: Site, progress: Progress = unseen) -> Done:
    """Run the jobs that were asked for."""
    from headway.emulation import validated_faults

    validated_faults(site.config.emulation.faults, f"{site.config.source}: emulation.faults")
    done = _run(asked, site, work_of(asked, site), progress)
    # The emulated cluster has the jobs with their secrets, too, and a record of each; its parts refer to each
    # other.
    gc.collect()
    return done


def _run(asked: Asked, site: Site, work: Work, progress: Progress) -> Done:
    from headway.experiment.answers import refuse_without_campaign
    from headway.experiment.draws import middle

    judged = _judged_by(work, asked, site)
    if asked.method.strict_method:
        before = judged.before(site.catalogue)
        refuse_without_campaign(before.judged, work.name)
    about = {"workload": Path(work.name).name if work.trace is not None else work.name}
    if site.estimates is not None:
        about["estimates"] = " ".join([str(asked.work.estimates), *asked.work.estimate_settings])
    emulation = _emulation(work, site)
    seed = site.seed
    if asked.chance.draws > 1:
        found = middle(emulation, seed, asked.chance.draws)
        seed = found.seed
        apart = f"half of the jobs start within {found.apart:.1f} s of their middle start"
        about["draws"] = f"{asked.chance.draws}; {apart}"
    opened = None
    if asked.work.in_chains:
        about["feedback"] = f"{len(work.chains)} of {len(work.jobs)} jobs follow another job" + (
            ", as inferred from think times" if work.inferred else ", as the trace says"
        )
        with progress(f"{site.label}, open", work.jobs) as advance:
            opened = in_short(emulation(seed=seed, on_cycle=advance))
    journal = _opened(asked.outputs.journal_path) if asked.outputs.journal_path else None
    try:
        with progress(site.label, work.jobs) as advance:
            result = emulation(
                seed=seed,
                chains=work.chains,
                refused=work.refused,
                keep_decisions=asked.outputs.out is not None or asked.outputs.decisions,
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
    return Done(result, work.name, replayed, judged, about, opened)


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
        latencies=_configured_latencies(config, site.warn),
        fair_links=config.transfers.links == "fair",
    )


def _opened(path: str) -> Journal:
    from headway.journal import Journal

    return Journal.open(path)


def _configured_latencies(config: Config, warn: Callable[[str], None]) -> Latencies | None:
    """What emulation.latency asks for."""
    if config.emulation.latency == "none":
        return None
    # Not above: it brings the journal, which takes longer to load than a small run takes.
    from headway.dry_run.latencies import measured_latencies

    found = measured_latencies(config)
    if found is None:
        warn(
            f"emulation.latency: the journal {config.journal} has no measurements yet; the run has no "
            "latencies"
        )
    return found


def _judged_by(work: Work, asked: Asked, site: Site) -> One:
    """What the rule book is shown of a run: its policy, and the facts of its workload."""
    from headway.experiment.answers import accepted
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


def in_short(result: RunResult) -> str:
    """Mean wait and mean bounded slowdown."""
    from headway.metrics import job_columns
    from headway.metrics.summary import statistics
    from headway.report.quantities import duration, number

    columns = job_columns(result)
    wait, slowdown = statistics(columns.wait)["mean"], statistics(columns.bounded_slowdown)["mean"]
    return f"mean wait {duration(wait)}, bounded slowdown {number(slowdown)}"
