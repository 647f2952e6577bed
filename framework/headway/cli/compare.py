"""``headway compare``: a campaign."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.table import Table

from headway.cli.common import console, messages, new_progress
from headway.extras import need_report

METRICS = ("mean wait", "mean bounded slowdown", "slowdown of means", "utilisation")

#: With an energy profile; its figures are joules and watts only if it is calibrated.
ENERGY_METRICS = ("energy", "peak power")
ENERGY_UNITS = {"energy": ("kWh", 3.6e6), "peak power": ("kW", 1e3)}


@click.command("compare")
@click.argument("campaign", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path("comparison"), show_default=True,
              help="Directory for rows.csv and the plots.")  # fmt: skip
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    help="Processes; default: all cores.",
)
def command(campaign: Path, out: Path, workers: int) -> None:
    """Run policies x workloads x loads x seeds, and compare them with confidence intervals.

    CAMPAIGN is a YAML file; etc/campaigns/ has examples. Its keys: processors or nodes (as emulation.nodes
    of a configuration), energy (a profile, or profile and classes as there), policies (names, or label,
    plugins and cycle), workloads (model, options and loads, or trace, arrival_factors and limit; label),
    seeds, first_seed, cycle.
    """
    need_report("headway compare")
    from headway.experiment import interval, run_campaign
    from headway.experiment.campaign import points, select, write_rows
    from headway.experiment.definition import load_campaign
    from headway.experiment.plots import line_plot

    plan = load_campaign(campaign)
    out.mkdir(parents=True, exist_ok=True)
    with new_progress() as progress:
        task = progress.add_task("emulations", total=plan.size())
        rows = run_campaign(plan, workers=workers, on_done=lambda n: progress.advance(task, n))
    write_rows(out / "rows.csv", rows)
    screen = console()
    profiles = [s.cluster.energy for s in plan.scenarios if s.cluster is not None and s.cluster.energy]
    metrics = METRICS + (ENERGY_METRICS if profiles else ())
    units = ENERGY_UNITS if all(profile.absolute for profile in profiles) else {}
    heads = [f"{metric}, {units[metric][0]}" if metric in units else metric for metric in metrics]
    table = Table("workload", "x", "policy", *heads, box=None, pad_edge=False)
    for scenario, x in points(rows):
        for variant in plan.variants:
            means = []
            for metric in metrics:
                _, size = units.get(metric, ("", 1.0))
                found = select(rows, metric, scenario=scenario, variant=variant.label, x=x)
                means.append(interval([value / size for value in found]))
            table.add_row(scenario, f"{x:g}", variant.label, *(str(mean) for mean in means))
    screen.print(table)
    screen.print(
        f"means over {len(plan.seeds)} seeds (traces: one run), ± half of the 95 % confidence interval"
    )
    for scenario in dict.fromkeys(s.label for s in plan.scenarios):
        part = [row for row in rows if row.scenario == scenario]
        if len({row.x for row in part}) > 1:
            name = "".join(c if c.isalnum() else "-" for c in scenario)
            line_plot(
                part, metrics, out / f"{name}.png", x_label="load or arrival factor", title=scenario,
                units=units,
            )  # fmt: skip
    messages().print(f"written: {out}", markup=False)
