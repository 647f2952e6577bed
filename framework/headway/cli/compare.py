"""``headway compare``: a campaign."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from headway.cli.common import console, messages, new_progress
from headway.extras import need_report

if TYPE_CHECKING:
    from headway.experiment.rulebook import Evidence
    from headway.experiment.statistics import Interval

#: Of the table, beside offered and achieved load, and of the plots.
METRICS = ("mean wait", "mean bounded slowdown", "geometric mean bounded slowdown")
PLOTTED = ("mean wait", "mean bounded slowdown", "achieved load")

#: Metrics in seconds.
SECONDS = ("mean wait",)

#: With an energy profile; its figures are joules and watts only if it is calibrated.
ENERGY_METRICS = ("energy", "peak power")
ENERGY_UNITS = {"energy": ("kWh", 3.6e6), "peak power": ("kW", 1e3)}


@click.command("compare")
@click.argument("campaign", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path("comparison"), show_default=True,
              help="Directory for rows, what the rules found, and plots.")  # fmt: skip
@click.option("--strict", is_flag=True,
              help="Refuse a campaign that breaks a rule or leaves a question open.")  # fmt: skip
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    help="Processes; default: all cores.",
)
def command(campaign: Path, out: Path, strict: bool, workers: int) -> None:
    """Run policies x workloads x loads x seeds, compare them with confidence intervals, and say which rules
    of the evaluation of schedulers were kept and which were broken.

    CAMPAIGN is a YAML file; etc/campaigns/ has examples. Its keys: processors or nodes (as emulation.nodes
    of a configuration), energy (a profile, or profile and classes as there), policies (names, or label,
    plugins and cycle), workloads (model, options and loads, or trace, one of arrival_factors, target_loads,
    runtime_factors and size_factors, resample and limit; label), seeds, first_seed, cycle, method.
    """
    need_report("headway compare")
    from headway.cli.rules import refuse_breaches, show_rules
    from headway.experiment import run_campaign
    from headway.experiment.campaign import drawn, seeds_of, workload_facts
    from headway.experiment.definition import load_campaign
    from headway.experiment.folder import write_method, write_results
    from headway.experiment.plots import line_plot
    from headway.experiment.rulebook import Kind, evidence_of, excluded, judge
    from headway.plugins import Catalogue

    plan = load_campaign(campaign)
    catalogue = Catalogue()
    first = [(one, seeds_of(one, plan.seeds)[0]) for one in plan.scenarios]
    before = judge(
        evidence_of(
            plan,
            catalogue,
            workloads=[workload_facts(one, seed, drawn(one, seed, catalogue)) for one, seed in first],
        )
    )
    refuse_breaches(before, campaign, worst=None if strict else Kind.REFUSE)
    out.mkdir(parents=True, exist_ok=True)
    with new_progress() as progress:
        task = progress.add_task("emulations", total=plan.size())
        rows = run_campaign(plan, workers=workers, on_done=lambda n: progress.advance(task, n))
    write_results(out, campaign, plan, rows)
    evidence = evidence_of(plan, catalogue, rows=rows)
    found = judge(evidence)
    write_method(out, campaign, plan, found)
    left_out = excluded(found)
    screen = console()
    profiles = [s.cluster.energy for s in plan.scenarios if s.cluster is not None and s.cluster.energy]
    energy = ENERGY_METRICS if profiles else ()
    units = ENERGY_UNITS if all(profile.absolute for profile in profiles) else {}
    screen.print(_means(evidence, (*METRICS, *energy), units, left_out))
    screen.print(
        f"means over {len(plan.seeds)} seeds (traces that nothing is drawn of: one run, by batches), "
        "± half of the 95 % confidence interval; × left out of verdicts"
    )
    if len(plan.variants) > 1:
        screen.print(_changes(evidence, left_out))
    show_rules(screen, found)
    for scenario in dict.fromkeys(s.label for s in plan.scenarios):
        part = [row for row in rows if row.scenario == scenario]
        if len({row.x for row in part}) > 1:
            name = "".join(c if c.isalnum() else "-" for c in scenario)
            line_plot(
                part, (*PLOTTED, *energy), out / f"{name}.png", x_label="load or factor", title=scenario,
                units=units,
            )  # fmt: skip
    messages().print(f"written: {out}", markup=False)
    if strict:
        refuse_breaches(found, campaign)


def _means(
    evidence: Evidence,
    metrics: Sequence[str],
    units: Mapping[str, tuple[str, float]],
    left_out: Mapping[tuple[str, float, str], str],
) -> Table:
    """A line a point: offered and achieved load, and the metrics with their intervals."""
    from headway.experiment.statistics import Interval, batch_interval, interval

    names = {"mean bounded slowdown": "bounded slowdown", "geometric mean bounded slowdown": "geometric mean"}
    heads = [f"{name}, {units[name][0]}" if name in units else names.get(name, name) for name in metrics]
    table = Table("workload", "x", "policy", "offered / achieved", *heads, box=None, pad_edge=False)
    for scenario, x, variant, rows in evidence.points():
        offered, achieved = (
            interval([row.values[name] for row in rows]).mean for name in ("offered load", "achieved load")
        )
        cells = []
        for metric in metrics:
            _, size = units.get(metric, ("", 1.0))
            found = interval([row.values[metric] / size for row in rows])
            if len(rows) == 1:
                batches = batch_interval([mean / size for mean in rows[0].batches.get(metric, ())])
                if batches.interval.count > 1 and batches.valid:
                    found = Interval(found.mean, batches.interval.half, batches.interval.count)
            cells.append(in_time(found) if metric in SECONDS else str(found))
        mark = " ×" if (scenario, x, variant) in left_out else ""
        table.add_row(scenario, f"{x:g}", variant + mark, f"{offered:.3f} / {achieved:.3f}", *cells)
    return table


def _changes(evidence: Evidence, left_out: Mapping[tuple[str, float, str], str]) -> Table:
    """A line a verdict: each policy against the first."""
    from headway.experiment.rulebook.comparisons import verdicts

    base = evidence.campaign.variants[0].label
    table = Table(
        "workload",
        "x",
        "policy",
        "metric",
        f"against {base}, %",
        "less in",
        "verdict",
        box=None,
        pad_edge=False,
    )
    for one in verdicts(evidence, left_out):
        share = f"{one.less} of {one.of}"
        table.add_row(
            one.scenario, f"{one.x:g}", one.variant, one.metric, percent(one.change), share, one.says
        )
    return table


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
