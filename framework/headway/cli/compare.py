"""``headway compare``: a campaign."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import figured_json
from headway.cli.campaigns import all_failed, place_options, run_in_folder, write_all
from headway.cli.collecting import note
from headway.cli.common import console, messages, policy_file_option, say, tell_issues
from headway.inputs.extras import need_report

if TYPE_CHECKING:
    from headway.cli.campaigns import Ran
    from headway.experiment.campaign import Campaign, Row
    from headway.experiment.facts import WorkloadFacts
    from headway.experiment.rulebook import Evidence, Judged
    from headway.experiment.statistics import Interval
    from headway.model.energy import EnergyProfile
    from headway.plugins import Catalogue
    from headway.report.table import Table
    from headway.workload.emulation import Refused
    from headway.workload.trace import Trace

#: Of the table, beside offered and achieved load, and of the plots.
METRICS = ("mean wait", "mean bounded slowdown", "geometric mean bounded slowdown")
PLOTTED = ("mean wait", "mean bounded slowdown", "achieved load")

#: Of workloads whose jobs have users: means over these, and the longest mean of one of them.
BY_HOLDER = (
    "mean wait by user",
    "worst mean wait by user",
    "mean wait by account",
    "worst mean wait by account",
)
#: Metrics in seconds.
SECONDS = ("mean wait", *BY_HOLDER)

#: With an energy profile; its figures are joules and watts only if it is calibrated.
ENERGY_METRICS = ("energy", "peak power")
ENERGY_UNITS = {"energy": ("kWh", 3.6e6), "peak power": ("kW", 1e3)}


@click.command("compare")
@click.argument("campaign", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path("comparison"), show_default=True,
              help="Directory for rows, findings of the rules, plots, and a page with all of "
                   "these.")  # fmt: skip
@click.option("--strict", is_flag=True,
              help="Refuse a campaign that breaks a rule or leaves a question open.")  # fmt: skip
@click.option("--anew", is_flag=True,
              help="Drop the earlier runs in the directory. Default: continue the campaign.")  # fmt: skip
@policy_file_option
@place_options
@figured_json("headway.cli.figured:ComparisonReport")
def command(
    campaign: Path,
    out: Path,
    strict: bool,
    anew: bool,
    plugin_files: tuple[Path, ...],
    workers: int | None,
    scheduler: str,
) -> None:
    """Run policies x workloads x loads x seeds, compare them with confidence intervals, and say which rules
    of the evaluation of schedulers were kept and which were broken.

    CAMPAIGN is a YAML file; etc/campaigns/ has examples. Its keys: processors, nodes or torus (as under
    emulation in a configuration), energy (a profile, or profile and classes as there), policies (names, or
    label, plugins and cycle), workloads (model, options and loads, or trace, one of arrival_factors,
    target_loads, runtime_factors and size_factors, resample and limit; label), seeds, first_seed, cycle,
    method.

    The same seeds give the same results, wherever they run. What has run is kept as it ends: the same command
    goes on after an interruption. A run that fails does not end the others; it is named at the end, and run
    again by the next call.
    """
    need_report("headway compare")
    from headway.cli.rules import refuse_breaches, rules_table, show_rules
    from headway.experiment.campaign import tasks_of
    from headway.experiment.definition import load_campaign
    from headway.experiment.rulebook import Kind, evidence_of, judge
    from headway.plugins import Catalogue
    from headway.report.campaign import write_campaign_page

    plan = load_campaign(campaign, plugin_files=plugin_files)
    text = campaign.read_text(encoding="utf-8")
    catalogue = Catalogue(plan.plugin_files)
    before = judge(evidence_of(plan, catalogue, workloads=list(_looked_at(plan, catalogue))))
    refuse_breaches(before, campaign, worst=None if strict else Kind.REFUSE)

    found: list[Judged] = []

    def finish(ran: Ran) -> None:
        found.extend(judge(evidence_of(plan, catalogue, rows=ran.rows)))
        call = ["headway", "compare", str(campaign), "--out", str(out), *(["--strict"] if strict else [])]
        call += [word for file in plugin_files for word in ("--plugin", str(file))]
        write_all(out, plan, ran, found, text=text, folder=campaign.parent, call=call)

    ran = run_in_folder(
        plan, campaign.parent, out, workers=workers, scheduler=scheduler, anew=anew, finish=finish
    )
    tables = _told(evidence_of(plan, catalogue, rows=ran.rows), found)
    show_rules(console(), found)
    plots = _plots(plan, ran.rows, out)
    write_campaign_page(
        out / "report.html", f"Campaign {campaign.stem}", [*tables, rules_table(found)], plots
    )
    messages().print(f"written: {out}", markup=False)
    if ran.failed:
        raise all_failed(out, ran.failed, len(tasks_of(plan)))
    if strict:
        refuse_breaches(found, campaign)


def _told(evidence: Evidence, found: Sequence[Judged]) -> list[Table]:
    """The tables, after they and their numbers are printed."""
    _note(evidence, found)
    tables = _tables(evidence, found)
    _print(tables)
    return tables


def _tables(evidence: Evidence, found: Sequence[Judged]) -> list[Table]:
    """Means, waits by user where jobs have users, and what changed against the first policy."""
    from headway.experiment.rulebook import excluded

    plan, left_out = evidence.campaign, excluded(found)
    tables = [_means(evidence, (*METRICS, *_energy_metrics(plan)), _units(plan), left_out)]
    if any(row.values.get("mean wait by user", nan) >= 0 for row in evidence.rows or ()):
        tables.append(_means(evidence, BY_HOLDER, {}, left_out, "Waits by user and account"))
    if len(plan.variants) > 1:
        tables.append(_changes(evidence, left_out))
    return tables


def _plots(plan: Campaign, rows: Sequence[Row], out: Path) -> list[tuple[str, Path]]:
    """Draw each workload with several loads or factors; workload and file."""
    from headway.experiment.plots import line_plot

    plots = []
    for scenario in dict.fromkeys(s.label for s in plan.scenarios):
        part = [row for row in rows if row.scenario == scenario]
        if len({row.x for row in part}) > 1:
            name = "".join(c if c.isalnum() else "-" for c in scenario)
            line_plot(
                part, (*PLOTTED, *_energy_metrics(plan)), out / f"{name}.png", x_label="load or factor",
                title=scenario, units=_units(plan),
            )  # fmt: skip
            plots.append((scenario, out / f"{name}.png"))
    return plots


def _profiles(plan: Campaign) -> list[EnergyProfile]:
    return [s.cluster.energy for s in plan.scenarios if s.cluster is not None and s.cluster.energy]


def _energy_metrics(plan: Campaign) -> tuple[str, ...]:
    """The metrics of power and energy, if a machine has a profile."""
    return ENERGY_METRICS if _profiles(plan) else ()


def _units(plan: Campaign) -> Mapping[str, tuple[str, float]]:
    """Joules and watts are said only of calibrated profiles."""
    return ENERGY_UNITS if all(profile.absolute for profile in _profiles(plan)) else {}


def _looked_at(plan: Campaign, catalogue: Catalogue) -> Iterator[WorkloadFacts]:
    """The facts of each scenario with its first seed. Says once a trace what was left out of it."""
    from headway.experiment.campaign import drawn, seeds_of, workload_facts

    told: set[str] = set()
    for scenario in plan.scenarios:
        seed = seeds_of(scenario, plan.seeds)[0]
        found = drawn(scenario, seed, catalogue)
        if found.trace is not None and scenario.trace not in told:
            told.add(scenario.trace)
            _tell_left_out(found.trace, found.refused)
        yield workload_facts(scenario, seed, found)


def _tell_left_out(trace: Trace, refused: Sequence[Refused]) -> None:
    """Say what of a trace does not run, on standard error: its lines, and jobs that cannot run here."""
    tell_issues(trace)
    alike: dict[str, list[Refused]] = {}
    for one in refused:
        # The numbers differ from job to job.
        alike.setdefault(re.sub(r" \(.*?\)", "", one.reason), []).append(one)
    for jobs in alike.values():
        count = f"{len(jobs):,} jobs left out, first" if len(jobs) > 1 else "1 job left out,"
        say(f"{trace.path}: {count} job {jobs[0].job_id}: {jobs[0].reason}", messages(), "yellow")


def _means(
    evidence: Evidence,
    metrics: Sequence[str],
    units: Mapping[str, tuple[str, float]],
    left_out: Mapping[tuple[str, float, str], str],
    title: str = "Means",
) -> Table:
    """A line a point: offered and achieved load, and the metrics with their intervals."""
    from headway.experiment.statistics import interval
    from headway.report.table import Table

    names = {"mean bounded slowdown": "bounded slowdown", "geometric mean bounded slowdown": "geometric mean"}
    heads = [f"{name}, {units[name][0]}" if name in units else names.get(name, name) for name in metrics]
    lines = []
    for scenario, x, variant, rows in evidence.points():
        offered, achieved = (
            interval([row.values[name] for row in rows]).mean for name in ("offered load", "achieved load")
        )
        cells = []
        for metric in metrics:
            found = _mean(rows, metric, units.get(metric, ("", 1.0))[1])
            cells.append(in_time(found) if metric in SECONDS else str(found))
        mark = " ×" if (scenario, x, variant) in left_out else ""
        lines.append((scenario, f"{x:g}", variant + mark, f"{offered:.3f} / {achieved:.3f}", *cells))
    seeds = len(evidence.campaign.seeds)
    remark = (
        f"means over {seeds} seeds (traces that nothing is drawn of: one run, by batches), "
        "± half of the 95 % confidence interval; × left out of verdicts"
    )
    return Table(title, ("workload", "x", "policy", "offered / achieved", *heads), lines, 3, remark)


def _mean(rows: Sequence[Row], metric: str, size: float = 1.0) -> Interval:
    """The metric over the runs of a point, in units of ``size``; of a single run the interval is of
    batches."""
    from headway.experiment.statistics import Interval, batch_interval, interval

    found = interval([row.values[metric] / size for row in rows])
    if len(rows) == 1:
        batches = batch_interval([mean / size for mean in rows[0].batches.get(metric, ())])
        if batches.interval.count > 1 and batches.valid:
            return Interval(found.mean, batches.interval.half, batches.interval.count)
    return found


def points(evidence: Evidence, left_out: Collection[tuple[str, float, str]]) -> list[dict[str, Any]]:
    """All metrics of each point: see :class:`headway.cli.figured.PointReport`."""
    return [
        {
            "workload": scenario,
            "x": x,
            "policy": variant,
            "left_out": (scenario, x, variant) in left_out,
            "metrics": {name: asdict(_mean(rows, name)) for name in rows[0].values},
        }
        for scenario, x, variant, rows in evidence.points()
    ]


def _note(evidence: Evidence, found: Sequence[Judged]) -> None:
    """The numbers of the tables, for ``--json``."""
    from headway.experiment.rulebook import excluded
    from headway.experiment.rulebook.comparisons import verdicts

    left_out = excluded(found)
    changes = [
        {
            "workload": one.scenario, "x": one.x, "policy": one.variant, "against": one.against,
            "metric": one.metric, "change": asdict(one.change), "less": one.less, "of": one.of,
            "verdict": one.says,
        }
        for one in (verdicts(evidence, left_out) if len(evidence.campaign.variants) > 1 else ())
    ]  # fmt: skip
    note(points=points(evidence, left_out), changes=changes)


def _print(tables: Sequence[Table]) -> None:
    from rich.table import Table as ScreenTable

    for table in tables:
        shown = ScreenTable(*table.heads, box=None, pad_edge=False)
        for row in table.rows:
            shown.add_row(*row)
        console().print(shown)
        if table.note:
            console().print(table.note)


def _changes(evidence: Evidence, left_out: Mapping[tuple[str, float, str], str]) -> Table:
    """A line a verdict: each policy against the first."""
    from headway.experiment.rulebook.comparisons import verdicts
    from headway.report.table import Table

    base = evidence.campaign.variants[0].label
    lines = [
        (one.scenario, f"{one.x:g}", one.variant, one.metric, percent(one.change), f"{one.less} of {one.of}",
         one.says)
        for one in verdicts(evidence, left_out)
    ]  # fmt: skip
    heads = ("workload", "x", "policy", "metric", f"against {base}, %", "less in", "verdict")
    return Table(f"Against {base}", heads, lines, len(heads))


def percent(found: Interval) -> str:
    """A change in percent with its interval."""
    if not isfinite(found.mean):
        return "–"
    return f"{found.mean:+.1f}" + (f" ± {found.half:.1f}" if found.count > 1 else "")


def in_time(found: Interval) -> str:
    """A mean in seconds with its interval, as `dry-run` writes times."""
    from headway.report.quantities import duration

    if not isfinite(found.mean):
        return duration(None)
    return duration(found.mean) + (f" ± {duration(found.half)}" if found.count > 1 else "")
