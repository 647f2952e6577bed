"""Running many emulations and keeping their numbers.

A campaign is a list of *variants* (plugins with options, under a label) and a list of *scenarios*
(workloads with everything but the seed fixed). Every variant meets the same workload for a given
scenario and seed, so that differences can be taken pair by pair.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
from numpy.typing import NDArray

from headway.emulation import emulate
from headway.errors import UserError, nearest
from headway.experiment.estimates import chosen_model
from headway.experiment.facts import WorkloadFacts, facts_of
from headway.experiment.measured import aligned, common_window, figures, observed
from headway.experiment.method import Method
from headway.experiment.prime_time import prime_time
from headway.inputs.validation import explain_validation
from headway.journal.latencies import Latencies
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.plugins.failures import refuse_failed
from headway.report.atomic import writing
from headway.results import Refused
from headway.workload import (
    Trace,
    Workload,
    estimated_workload,
    first,
    offered_load,
    read_trace,
    resampled,
    scale_arrivals,
    scale_runtimes,
    scale_sizes,
)
from headway.workload.chains import chains_of, recorded_chains, with_chains
from headway.workload.trace_pools import TracePools, emulated_jobs


@dataclass(frozen=True)
class Variant:
    """A policy in the sense of an experiment: plugins, in order, under one label."""

    label: str
    plugins: tuple[PluginConfig, ...]
    #: Batch mode: jobs start only at multiples of so many seconds.
    cycle: float | None = None


@dataclass(frozen=True)
class Scenario:
    """A workload up to its seed: a model with options, or a trace with a factor on its arrival times."""

    label: str
    #: What the scenario varies, for plots: such as the load, or a parameter.
    x: float
    processors: int
    model: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    trace: str = ""
    #: Factors on a trace's times between submissions, its runtimes and estimates, and its sizes.
    arrival_factor: float = 1.0
    runtime_factor: float = 1.0
    size_factor: float = 1.0
    #: The trace's offered load, reached by the times between submissions; None: what it is.
    target_load: float | None = None
    #: "weeks" or "users": each seed draws another trace from this trace; "": the trace as it is.
    resample: str = ""
    #: "chains": jobs are submitted when their users' earlier ones have ended; "": at the trace's own times.
    feedback: str = ""
    limit: int | None = None
    #: Only jobs of at least and at most so many processors.
    sizes: tuple[int, int] | None = None
    #: The machine, if it is not a flat pool of ``processors``: nodes, an energy profile.
    cluster: ClusterDescription | None = None
    #: Which pools the jobs of the trace are sent to; None: all to the first.
    trace_pools: TracePools | None = None
    #: Of pools by name, as with :class:`headway.scheduler.Scheduler`.
    tiers: Mapping[str, int] = field(default_factory=dict)
    #: An estimate model by name or file, and its options; "": the workload's own estimates.
    estimates: str = ""
    estimate_options: Mapping[str, Any] = field(default_factory=dict)
    #: How long starts and ends take; None: no time.
    latencies: Latencies | None = None

    @property
    def machine(self) -> ClusterDescription:
        return self.cluster or ClusterDescription.flat(self.processors)


@dataclass(frozen=True)
class Row:
    """One emulation's numbers."""

    scenario: str
    x: float
    variant: str
    seed: int
    #: Metric -> value; NaN where it has none.
    values: dict[str, float]
    #: Metric -> its means over batches of the measured jobs, in order of submission.
    batches: Mapping[str, Sequence[float]] = field(default_factory=dict, compare=False, repr=False)
    #: What its workload looks like; None: not known any more.
    facts: WorkloadFacts | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> Key:
        return self.scenario, self.x, self.variant, self.seed


#: What a row is found by: scenario, x, variant, seed.
Key = tuple[str, float, str, int]
_KEY = ("scenario", "x", "variant", "seed")


@dataclass(frozen=True)
class Campaign:
    """What to run: every variant on every scenario with every seed."""

    variants: tuple[Variant, ...]
    scenarios: tuple[Scenario, ...]
    seeds: tuple[int, ...]
    method: Method = field(default_factory=Method)
    #: Absolute paths of Python files whose plugins the policies may name.
    plugin_files: tuple[str, ...] = ()
    #: Plugin classes of the program that asks, which the policies may name, too.
    plugin_classes: tuple[type, ...] = ()

    def catalogue(self) -> Catalogue:
        """The plugins that its policies may name."""
        return Catalogue(self.plugin_files, self.plugin_classes)

    def size(self) -> int:
        """Number of emulations."""
        return sum(len(self.variants) * len(seeds_of(s, self.seeds)) for s in self.scenarios)


def seeds_of(scenario: Scenario, seeds: Sequence[int]) -> Sequence[int]:
    """A trace that nothing of is drawn is what it is: one seed is enough."""
    drawn = not scenario.trace or scenario.estimates or scenario.resample
    return seeds if drawn else seeds[:1]


@dataclass(frozen=True)
class Drawn:
    """A scenario's workload for one seed, and what it was made from."""

    workload: Workload
    #: As it was scaled; None: of a model.
    trace: Trace | None = None
    #: Jobs of the trace that cannot run here.
    refused: list[Refused] = field(default_factory=list)
    #: By which factors the trace was changed.
    scaled: Mapping[str, float] = field(default_factory=dict)
    #: The trace does not say which jobs follow which; that was inferred.
    inferred: bool = False
    #: Which records of the trace were submitted in prime time; None: it has no calendar.
    prime: NDArray[np.bool_] | None = None


def workload_of(scenario: Scenario, seed: int, catalogue: Catalogue) -> Workload:
    """The scenario's jobs and commands for one seed."""
    return drawn(scenario, seed, catalogue).workload


def drawn(scenario: Scenario, seed: int, catalogue: Catalogue) -> Drawn:
    """The scenario's jobs and commands for one seed, and what they were made from."""
    found = _source(scenario, seed, catalogue)
    workload = found.workload
    if scenario.estimates:
        where = f"scenario {scenario.label!r}: estimates"
        chosen = chosen_model(catalogue, scenario.estimates, scenario.estimate_options, where)
        workload = estimated_workload(workload, chosen, seed)
    if scenario.sizes is not None:
        least, most = scenario.sizes
        jobs = [job for job in workload.jobs if least <= job.job.request.processors <= most]
        kept = {job.job.id for job in jobs}
        workload = Workload(
            jobs,
            [command for command in workload.commands if command.job_id in kept],
            chains={
                name: link for name, link in workload.chains.items() if name in kept and link.job_id in kept
            },
        )
    return replace(found, workload=workload)


def workload_facts(scenario: Scenario, seed: int, found: Drawn) -> WorkloadFacts:
    """What the rules on workloads judge."""
    return facts_of(
        scenario.label,
        scenario.x,
        seed,
        found.workload,
        scenario.processors,
        trace=found.trace,
        refused=found.refused,
        inferred=found.inferred,
        modelled_estimates=bool(scenario.estimates),
        scaled=found.scaled,
    )


def read_once(path: str) -> Trace:
    """The trace of this file: read once for the tasks of all seeds that run in this process."""
    if not os.path.isfile(path):
        return read_trace(path)
    found = os.stat(path)
    return _read_as_of(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1)
def _read_as_of(path: str, changed: int, size: int) -> Trace:
    """A trace cannot be changed, so that tasks can share it; a changed file is another trace."""
    return read_trace(path)


def _source(scenario: Scenario, seed: int, catalogue: Catalogue) -> Drawn:
    """All jobs and commands of the scenario's model or trace."""
    if scenario.trace:
        trace = read_once(scenario.trace)
        if scenario.resample:
            trace = resampled(trace, scenario.resample, np.random.default_rng(seed))
        inferred = bool(scenario.feedback) and not recorded_chains(trace)
        if scenario.feedback:
            # Before the load is changed: think times are the users'.
            trace = with_chains(trace)
        # By the log's own clock, too.
        prime = prime_time(trace)
        trace, scaled = _scaled(trace, scenario)
        sizes = scenario.machine.pool_sizes()
        jobs, commands, refused = emulated_jobs(
            trace, scenario.processors, sizes, scenario.trace_pools, limit=scenario.limit
        )
        chains = chains_of(trace, jobs) if scenario.feedback else {}
        return Drawn(Workload(jobs, commands, chains=chains), trace, refused, scaled, inferred, prime)
    model = workload_models(catalogue).get(scenario.model)
    if model is None:
        raise UserError(
            f"workload model {scenario.model!r} is not installed."
            f"{nearest(scenario.model, workload_models(catalogue))}"
        )
    pool = {"pool": scenario.machine.pools[0].name} if "pool" in model.Options.model_fields else {}
    try:
        options = model.Options(**{**pool, **scenario.options})
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, f"scenario {scenario.label!r}", model.Options)) from error
    return Drawn(model.generate(np.random.default_rng(seed), options))


def _scaled(trace: Trace, scenario: Scenario) -> tuple[Trace, dict[str, float]]:
    """The trace as the scenario wants it, and by which factors it was changed."""
    if scenario.limit is not None and scenario.target_load is not None:
        trace = first(trace, scenario.limit)
    if scenario.size_factor != 1.0:
        trace = scale_sizes(trace, scenario.size_factor, scenario.processors)
    if scenario.runtime_factor != 1.0:
        trace = scale_runtimes(trace, scenario.runtime_factor)
    arrivals = scenario.arrival_factor
    if scenario.target_load is not None:
        arrivals *= offered_load(trace, scenario.processors) / scenario.target_load
    if arrivals != 1.0:
        trace = scale_arrivals(trace, arrivals)
    return trace, {
        "times between submissions": arrivals,
        "runtimes": scenario.runtime_factor,
        "sizes": scenario.size_factor,
    }


def workload_models(catalogue: Catalogue) -> dict[str, Any]:
    """Every installed workload model by name."""
    return catalogue.registered("register_workloads")


def _run_scenario(
    scenario: Scenario,
    seed: int,
    variants: Sequence[Variant],
    method: Method,
    plugin_files: Sequence[str] = (),
    plugin_classes: Sequence[type] = (),
) -> list[Row]:
    """All variants on one workload, measured on the same jobs; in a process of its own."""
    catalogue = Catalogue(plugin_files, plugin_classes)
    found = drawn(scenario, seed, catalogue)
    workload = found.workload
    facts = workload_facts(scenario, seed, found)
    prime = found.prime
    del found
    courses = []
    rows_of_jobs: list[list[int]] = []
    for variant in variants:
        try:
            result = emulate(
                scenario.machine,
                workload.jobs,
                list(variant.plugins),
                catalogue,
                label=variant.label,
                commands=workload.commands,
                chains=workload.chains,
                seed=seed,
                cycle=variant.cycle,
                tiers=scenario.tiers,
                latencies=scenario.latencies,
            )
            refuse_failed(result.failures)
        except Exception as error:
            error.add_note(f"policy {variant.label}")
            raise
        rows = [job.row for job in result.jobs]
        courses.append(observed(result, None if prime is None else prime[rows]))
        if workload.chains:
            rows_of_jobs.append(rows)
        del result
    if workload.chains:
        courses = aligned(courses, rows_of_jobs)
    window = common_window(courses, method)
    return [
        Row(scenario.label, scenario.x, variant.label, seed, measured.values, measured.batches, facts)
        for variant, course in zip(variants, courses, strict=True)
        for measured in [figures(course, window)]
    ]


@dataclass(frozen=True)
class Task:
    """A part of an experiment that runs in one piece, in a process of its own."""

    #: Of the rows that it gives, in their order.
    keys: tuple[Key, ...]
    run: Callable[..., list[Row]]
    arguments: tuple[Any, ...]


def tasks_of(campaign: Campaign) -> list[Task]:
    """A task for each scenario and seed: all variants on one workload."""
    return [
        Task(
            tuple((scenario.label, scenario.x, variant.label, seed) for variant in campaign.variants),
            _run_scenario,
            (
                scenario,
                seed,
                campaign.variants,
                campaign.method,
                campaign.plugin_files,
                campaign.plugin_classes,
            ),
        )
        for scenario in campaign.scenarios
        for seed in seeds_of(scenario, campaign.seeds)
    ]


def select(
    rows: Sequence[Row],
    metric: str,
    *,
    scenario: str | None = None,
    variant: str | None = None,
    x: float | None = None,
) -> list[float]:
    """The values of a metric over the rows that match, in order of seed."""
    return [
        row.values[metric]
        for row in sorted(rows, key=lambda r: r.seed)
        if (scenario is None or row.scenario == scenario)
        and (variant is None or row.variant == variant)
        and (x is None or row.x == x)
    ]


def points(rows: Sequence[Row]) -> Iterator[tuple[str, float]]:
    """The scenarios of the rows with their x, in order of appearance."""
    seen: set[tuple[str, float]] = set()
    for row in rows:
        if (row.scenario, row.x) not in seen:
            seen.add((row.scenario, row.x))
            yield row.scenario, row.x


def read_rows(path: Path) -> list[Row]:
    """What :func:`write_rows` wrote; a last line that was not written to its end is left out.

    Raises :class:`UserError` if it is something else.
    """
    rows = []
    try:
        whole, _, _ = path.read_bytes().rpartition(b"\n")
        for line in csv.DictReader(io.StringIO(whole.decode("utf-8"), newline="")):
            scenario, x, variant, seed = (line.pop(key) for key in ("scenario", "x", "variant", "seed"))
            values = {name: float(value) for name, value in line.items()}
            rows.append(Row(scenario, float(x), variant, int(seed), values))
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: expected the rows of a campaign, found something else") from error
    return rows


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """One line an emulation: scenario, x, variant, seed and every metric. The file is whole or as before."""
    with writing(path) as stream:
        stream.write(row_lines(rows, list(rows[0].values) if rows else [], head=True))


def append_rows(path: Path, rows: Sequence[Row]) -> None:
    """Further lines of a file of rows, which begins with them if there is none; on disk when this returns."""
    if not rows:
        return
    with open(path, "a+", newline="", encoding="utf-8") as stream:
        stream.seek(0)
        head = next(csv.reader(stream), None)
        names = head[len(_KEY) :] if head else list(rows[0].values)
        stream.write(row_lines(rows, names, head=head is None))
        stream.flush()
        os.fsync(stream.fileno())


def row_lines(rows: Sequence[Row], names: Sequence[str], *, head: bool) -> str:
    """The rows with these metrics as CSV, behind a line with the names if ``head``."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    if head:
        writer.writerow([*_KEY, *names])
    for row in rows:
        x = repr(float(row.x)).removesuffix(".0")
        writer.writerow([row.scenario, x, row.variant, row.seed, *(row.values[n] for n in names)])
    return text.getvalue()
